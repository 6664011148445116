#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* frame, void* others, void* flows, int64_t neighbours, int64_t height,
                               int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("frame"), d.input("others"), d.input("flows"),
                              d.size("neighbours"), d.size("height"), d.size("width"));
}

KB_DRIVER(call)
