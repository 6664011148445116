#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t rows, int64_t length);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("rows"), d.size("length"));
}

KB_DRIVER(call)
