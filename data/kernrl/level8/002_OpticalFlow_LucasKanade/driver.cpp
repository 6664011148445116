#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* first, void* second, int64_t height, int64_t width, int64_t radius,
                               float damping);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("first"), d.input("second"), d.size("height"),
                              d.size("width"), d.size("radius"), d.scalar("damping"));
}

KB_DRIVER(call)
