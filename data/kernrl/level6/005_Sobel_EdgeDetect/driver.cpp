#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* magnitude, void* across, void* down, void* x, int64_t images, int64_t height,
                               int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("magnitude"), d.output("across"), d.output("down"), d.input("x"),
                              d.size("images"), d.size("height"), d.size("width"));
}

KB_DRIVER(call)
