#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* u, void* u_before, int64_t height, int64_t width,
                               float courant_squared);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("u"), d.input("u_before"), d.size("height"), d.size("width"),
                              d.scalar("courant_squared"));
}

KB_DRIVER(call)
