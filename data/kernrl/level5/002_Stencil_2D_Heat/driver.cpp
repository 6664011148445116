#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* u, int64_t height, int64_t width, float alpha);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("u"), d.size("height"), d.size("width"), d.scalar("alpha"));
}

KB_DRIVER(call)
