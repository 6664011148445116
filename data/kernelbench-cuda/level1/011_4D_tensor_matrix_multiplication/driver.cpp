#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t b, int64_t i, int64_t j, int64_t l,
                               int64_t k);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("A"), d.input("B"), d.size("b"), d.size("i"),
                              d.size("j"), d.size("l"), d.size("k"));
}

KB_DRIVER(call)
