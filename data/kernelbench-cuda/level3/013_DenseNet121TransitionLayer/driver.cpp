#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* transition_0_weight, void* transition_0_bias,
                               void* transition_2_weight, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("transition.0.weight"),
                              d.weight("transition.0.bias"), d.weight("transition.2.weight"),
                              d.size("batch_size"), d.size("in_channels"), d.size("out_channels"),
                              d.size("height"), d.size("width"));
}

KB_DRIVER(call)
