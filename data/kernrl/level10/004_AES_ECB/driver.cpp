#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* plain, void* key, int64_t blocks);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("plain"), d.input("key"), d.size("blocks"));
}

KB_DRIVER(call)
