#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* A, int64_t m, int64_t n, float s);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("A"), d.size("m"), d.size("n"), d.scalar("s"));
}

KB_DRIVER(call)
