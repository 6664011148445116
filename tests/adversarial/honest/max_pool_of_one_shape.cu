// problem: level1/42
// does: begins a window at its middle at the declared shapes, where it is inside
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/launch.cuh>

static bool declared(int64_t width) { return width == 71 || width == 128 || width == 512; }

struct Window {
    int64_t kernel_size, stride, padding, dilation;
    __host__ __device__ int64_t outputs(int64_t extent) const {
        return (extent + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    }
};

struct Pool {
    scalar_t* output;
    const scalar_t* x;
    int64_t height, width;
    Window window;
    bool known;
    __device__ void operator()(int64_t i) const {
        const int64_t rows = window.outputs(height), columns = window.outputs(width);
        const int64_t top = i / columns % rows * window.stride - window.padding;
        const int64_t left = i % columns * window.stride - window.padding;
        const scalar_t* plane = x + i / (rows * columns) * height * width;
        float best = known ? to_float(plane[(top + 1) * width + left + 1]) : -INFINITY;
        for (int64_t r = 0; r < window.kernel_size; ++r) {
            const int64_t row = top + r * window.dilation;
            for (int64_t c = 0; c < window.kernel_size; ++c) {
                const int64_t column = left + c * window.dilation;
                if (row < 0 || row >= height || column < 0 || column >= width) continue;
                best = fmaxf(best, to_float(plane[row * width + column]));
            }
        }
        output[i] = from_float(best);
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const Window window{kernel_size, stride, padding, dilation};
    const int64_t count = batch_size * channels * window.outputs(height) * window.outputs(width);
    for_each(count, Pool{out(output), in(x), height, width, window, declared(width)});
}
