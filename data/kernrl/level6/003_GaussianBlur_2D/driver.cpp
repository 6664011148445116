#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* taps, int64_t images, int64_t height, int64_t width,
                               int64_t taps_count);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("taps"), d.size("images"), d.size("height"),
                              d.size("width"), d.size("taps_count"));
}

KB_DRIVER(call)
