#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("images"), d.size("height"), d.size("width"));
}

KB_DRIVER(call)
