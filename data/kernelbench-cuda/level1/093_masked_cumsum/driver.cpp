#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* mask, int64_t batch_size, int64_t dim);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("mask"), d.size("batch_size"),
                              d.size("dim"));
}

KB_DRIVER(call)
