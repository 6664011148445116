#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t height, int64_t width, int64_t block, int64_t alpha,
                               int64_t beta, int64_t most);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("height"), d.size("width"), d.size("block"),
                              d.size("alpha"), d.size("beta"), d.size("most"));
}

KB_DRIVER(call)
