// Blur by a separable window: one thread per pixel takes the whole window.
#include <kernelblaster/kernels/image.cuh>

struct Blur {
    const scalar_t *x, *taps;
    int64_t height, width, taps_count;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        float sum = 0.0f;
        for (int64_t r = 0; r < taps_count; ++r) {
            float row = 0.0f;
            for (int64_t c = 0; c < taps_count; ++c) {
                row += to_float(taps[c]) * image.or_zero(p.row + r - taps_count / 2, p.column + c - taps_count / 2);
            }
            sum += to_float(taps[r]) * row;
        }
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* x, void* taps, int64_t images, int64_t height, int64_t width,
                               int64_t taps_count) {
    generate(out(output), images * height * width, Blur{in(x), in(taps), height, width, taps_count});
}
