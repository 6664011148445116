#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* data, int64_t messages);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("data"), d.size("messages"));
}

KB_DRIVER(call)
