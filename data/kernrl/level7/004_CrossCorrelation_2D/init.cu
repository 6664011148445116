// Cross-correlation with a template: one thread per output.
#include <kernelblaster/kernels/image.cuh>

struct Correlate {
    Image image;
    const scalar_t* window;
    int64_t extent;
    __device__ float operator()(int64_t i) const {
        const int64_t width = image.width + 2 * (extent / 2) - extent + 1;
        const int64_t row = i / width - extent / 2, column = i % width - extent / 2;
        float sum = 0.0f;
        for (int64_t r = 0; r < extent; ++r) {
            for (int64_t c = 0; c < extent; ++c) {
                sum += to_float(window[r * extent + c]) * image.or_zero(row + r, column + c);
            }
        }
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* x, void* window, int64_t height, int64_t width, int64_t extent) {
    const int64_t more = 2 * (extent / 2) - extent + 1;
    generate(out(output), (height + more) * (width + more),
             Correlate{Image{in(x), height, width}, in(window), extent});
}
