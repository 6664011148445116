#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* data, int64_t messages, int64_t blocks);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("data"), d.size("messages"), d.size("blocks"));
}

KB_DRIVER(call)
