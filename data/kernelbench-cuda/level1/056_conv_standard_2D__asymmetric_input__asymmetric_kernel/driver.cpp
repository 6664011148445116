#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width,
                               int64_t kernel_h, int64_t kernel_w);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv2d.weight"), d.size("batch_size"),
                              d.size("in_channels"), d.size("out_channels"), d.size("height"), d.size("width"),
                              d.size("kernel_h"), d.size("kernel_w"));
}

KB_DRIVER(call)
