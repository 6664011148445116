#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* expand_conv_0_weight,
                               void* expand_conv_1_weight, void* expand_conv_1_bias,
                               void* depthwise_conv_0_weight, void* depthwise_conv_1_weight,
                               void* depthwise_conv_1_bias, void* project_conv_0_weight,
                               void* project_conv_1_weight, void* project_conv_1_bias,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels,
                               int64_t height, int64_t width, int64_t kernel_size, int64_t stride,
                               int64_t expand_ratio);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("expand_conv.0.weight"),
                              d.weight("expand_conv.1.weight"), d.weight("expand_conv.1.bias"),
                              d.weight("depthwise_conv.0.weight"), d.weight("depthwise_conv.1.weight"),
                              d.weight("depthwise_conv.1.bias"), d.weight("project_conv.0.weight"),
                              d.weight("project_conv.1.weight"), d.weight("project_conv.1.bias"),
                              d.size("batch_size"), d.size("in_channels"), d.size("out_channels"),
                              d.size("height"), d.size("width"), d.size("kernel_size"), d.size("stride"),
                              d.size("expand_ratio"));
}

KB_DRIVER(call)
