#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* window, int64_t height, int64_t width, int64_t extent,
                               float noise);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("window"), d.size("height"), d.size("width"),
                              d.size("extent"), d.scalar("noise"));
}

KB_DRIVER(call)
