#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* leaves, int64_t trees, int64_t depth);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("leaves"), d.size("trees"), d.size("depth"));
}

KB_DRIVER(call)
