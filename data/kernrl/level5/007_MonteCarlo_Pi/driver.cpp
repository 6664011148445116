#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* coordinates, int64_t rows, int64_t points);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("coordinates"), d.size("rows"), d.size("points"));
}

KB_DRIVER(call)
