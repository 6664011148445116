#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width, int64_t new_height,
                               int64_t new_width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("images"), d.size("height"), d.size("width"),
                              d.size("new_height"), d.size("new_width"));
}

KB_DRIVER(call)
