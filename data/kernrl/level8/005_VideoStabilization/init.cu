// Projective maps of frames: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Warp {
    const float *x, *maps;
    int64_t height, width;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const float row = static_cast<float>(p.row), column = static_cast<float>(p.column);
        const float* m = maps + 9 * p.image;
        const float w = m[6] * row + m[7] * column + m[8];
        return Image{x + p.image * height * width, height, width}.sample((m[0] * row + m[1] * column + m[2]) / w,
                                                                         (m[3] * row + m[4] * column + m[5]) / w);
    }
};

void launch_gpu_implementation(void* output, void* x, void* maps, int64_t frames, int64_t height, int64_t width) {
    generate(out(output), frames * height * width, Warp{in(x), in(maps), height, width});
}
