#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* maps, int64_t frames, int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("maps"), d.size("frames"), d.size("height"),
                              d.size("width"));
}

KB_DRIVER(call)
