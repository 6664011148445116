#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* points, void* boxes, int64_t queries, int64_t depth);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("points"), d.input("boxes"), d.size("queries"),
                              d.size("depth"));
}

KB_DRIVER(call)
