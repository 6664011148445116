#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* w, int64_t count, int64_t mode, float scale);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("fc.weight"), d.size("count"), d.size("mode"),
                              d.scalar("scale"));
}

KB_DRIVER(call)
