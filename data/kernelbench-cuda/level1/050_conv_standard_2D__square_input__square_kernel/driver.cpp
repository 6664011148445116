#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv1_weight, void* conv1_bias, int64_t batch_size,
                               int64_t height, int64_t width, int64_t out_channels);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv1.weight"),
                              d.weight("conv1.bias"), d.size("batch_size"), d.size("height"), d.size("width"),
                              d.size("out_channels"));
}

KB_DRIVER(call)
