#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* scale, void* conv_transpose_weight,
                               void* conv_transpose_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, int64_t output_padding, int64_t pool_kernel_size,
                               float clamp_min, float clamp_max);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("scale"), d.weight("conv_transpose.weight"),
                              d.weight("conv_transpose.bias"), d.size("batch_size"), d.size("in_channels"),
                              d.size("depth"), d.size("height"), d.size("width"), d.size("out_channels"),
                              d.size("kernel_size"), d.size("stride"), d.size("padding"), d.size("output_padding"),
                              d.size("pool_kernel_size"), d.scalar("clamp_min"), d.scalar("clamp_max"));
}

KB_DRIVER(call)
