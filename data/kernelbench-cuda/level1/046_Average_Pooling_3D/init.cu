// Mean over windows: one output per thread.
#include <kernelblaster/kernels/pool.cuh>

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t depth,
                               int64_t height, int64_t width, int64_t kernel_size, int64_t stride, int64_t padding) {
    const Pool shape{batch_size * channels, {depth, height, width}, cube(kernel_size), cube(stride),
                     cube(padding), cube(1), {}};
    pool(out(output), in(x), with_output(shape), AveragePool());
}
