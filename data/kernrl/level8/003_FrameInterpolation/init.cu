// Interpolation of frames: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Between {
    const float *first, *second, *flow;
    int64_t height, width;
    float time;
    __device__ float operator()(int64_t i) const {
        const float row = static_cast<float>(i / width), column = static_cast<float>(i % width);
        const float down = flow[2 * i], right = flow[2 * i + 1];
        const float before = Image{first, height, width}.sample(row - time * down, column - time * right);
        const float after =
            Image{second, height, width}.sample(row + (1.0f - time) * down, column + (1.0f - time) * right);
        return (1.0f - time) * before + time * after;
    }
};

void launch_gpu_implementation(void* output, void* first, void* second, void* flow, int64_t height, int64_t width,
                               float time) {
    generate(out(output), height * width, Between{in(first), in(second), in(flow), height, width, time});
}
