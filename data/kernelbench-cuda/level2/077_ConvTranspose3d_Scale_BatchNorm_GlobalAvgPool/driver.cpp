#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               void* batch_norm_weight, void* batch_norm_bias, void* batch_norm_running_mean,
                               void* batch_norm_running_var, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size, float eps,
                               float scale_factor);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv_transpose.weight"),
                              d.weight("conv_transpose.bias"), d.weight("batch_norm.weight"),
                              d.weight("batch_norm.bias"), d.weight("batch_norm.running_mean"),
                              d.weight("batch_norm.running_var"), d.size("batch_size"), d.size("in_channels"),
                              d.size("depth"), d.size("height"), d.size("width"), d.size("out_channels"),
                              d.size("kernel_size"), d.scalar("eps"), d.scalar("scale_factor"));
}

KB_DRIVER(call)
