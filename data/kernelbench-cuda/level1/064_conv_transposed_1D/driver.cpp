#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv1d_transpose_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t length, int64_t kernel_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv1d_transpose.weight"),
                              d.size("batch_size"), d.size("in_channels"), d.size("out_channels"),
                              d.size("length"), d.size("kernel_size"));
}

KB_DRIVER(call)
