#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* positions, void* charges, int64_t particles, int64_t grid);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("positions"), d.input("charges"), d.size("particles"),
                              d.size("grid"));
}

KB_DRIVER(call)
