#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* window, int64_t signals, int64_t length, int64_t frame,
                               int64_t hop);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("window"), d.size("signals"), d.size("length"),
                              d.size("frame"), d.size("hop"));
}

KB_DRIVER(call)
