#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, void* group_norm_weight,
                               void* group_norm_bias, int64_t batch_size, int64_t in_channels, int64_t height,
                               int64_t width, int64_t out_channels, int64_t kernel_size, int64_t num_groups,
                               float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv.weight"), d.weight("conv.bias"),
                              d.weight("group_norm.weight"), d.weight("group_norm.bias"), d.size("batch_size"),
                              d.size("in_channels"), d.size("height"), d.size("width"), d.size("out_channels"),
                              d.size("kernel_size"), d.size("num_groups"), d.scalar("eps"));
}

KB_DRIVER(call)
