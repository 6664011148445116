#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* positions, void* masses, int64_t bodies, float softening);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("positions"), d.input("masses"), d.size("bodies"),
                              d.scalar("softening"));
}

KB_DRIVER(call)
