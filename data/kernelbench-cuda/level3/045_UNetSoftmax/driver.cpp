#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t features, int64_t bottom_height, int64_t bottom_width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("in_channels"), d.size("out_channels"), d.size("features"),
                              d.size("bottom_height"), d.size("bottom_width"));
}

KB_DRIVER(call)
