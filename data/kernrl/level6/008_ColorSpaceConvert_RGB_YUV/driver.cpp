#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* matrix, void* offset, int64_t pixels);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("matrix"), d.input("offset"), d.size("pixels"));
}

KB_DRIVER(call)
