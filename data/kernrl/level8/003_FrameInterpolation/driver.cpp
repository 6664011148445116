#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* first, void* second, void* flow, int64_t height, int64_t width,
                               float time);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("first"), d.input("second"), d.input("flow"),
                              d.size("height"), d.size("width"), d.scalar("time"));
}

KB_DRIVER(call)
