#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* data, int64_t count);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("data"), d.size("count"));
}

KB_DRIVER(call)
