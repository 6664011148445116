#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("A"), d.input("B"), d.size("m"), d.size("k"),
                              d.size("n"));
}

KB_DRIVER(call)
