#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t stride, int64_t height,
                               int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("in_channels"), d.size("out_channels"), d.size("stride"),
                              d.size("height"), d.size("width"));
}

KB_DRIVER(call)
