#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* A, void* x, void* r, void* p, int64_t n);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("A"), d.input("x"), d.input("r"), d.input("p"), d.size("n"));
}

KB_DRIVER(call)
