#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv_transpose.weight"),
                              d.weight("batch_norm.weight"), d.weight("batch_norm.bias"), d.size("batch_size"),
                              d.size("in_channels"), d.size("depth"), d.size("height"), d.size("width"),
                              d.size("out_channels"), d.size("kernel_size"), d.size("stride"), d.size("padding"),
                              d.scalar("eps"));
}

KB_DRIVER(call)
