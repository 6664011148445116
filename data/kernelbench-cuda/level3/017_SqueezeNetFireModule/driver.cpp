#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* squeeze_weight, void* squeeze_bias,
                               void* expand1x1_weight, void* expand1x1_bias, void* expand3x3_weight,
                               void* expand3x3_bias, int64_t batch_size, int64_t in_channels,
                               int64_t squeeze_channels, int64_t expand1x1_channels,
                               int64_t expand3x3_channels, int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("squeeze.weight"),
                              d.weight("squeeze.bias"), d.weight("expand1x1.weight"),
                              d.weight("expand1x1.bias"), d.weight("expand3x3.weight"),
                              d.weight("expand3x3.bias"), d.size("batch_size"), d.size("in_channels"),
                              d.size("squeeze_channels"), d.size("expand1x1_channels"),
                              d.size("expand3x3_channels"), d.size("height"), d.size("width"));
}

KB_DRIVER(call)
