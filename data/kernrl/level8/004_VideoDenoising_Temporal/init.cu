// Denoising along flows: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Mean {
    const float *frame, *others, *flows;
    int64_t neighbours, height, width;
    __device__ float operator()(int64_t i) const {
        const float row = static_cast<float>(i / width), column = static_cast<float>(i % width);
        float total = frame[i];
        for (int64_t k = 0; k < neighbours; ++k) {
            const int64_t first = k * height * width;
            const float* flow = flows + 2 * (first + i);
            total += Image{others + first, height, width}.sample(row + flow[0], column + flow[1]);
        }
        return total / static_cast<float>(1 + neighbours);
    }
};

void launch_gpu_implementation(void* output, void* frame, void* others, void* flows, int64_t neighbours, int64_t height,
                               int64_t width) {
    generate(out(output), height * width, Mean{in(frame), in(others), in(flows), neighbours, height, width});
}
