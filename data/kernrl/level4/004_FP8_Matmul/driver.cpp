#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* a, void* b, void* a_scales, void* b_scales, int64_t rows,
                               int64_t columns, int64_t inner);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("a"), d.input("b"), d.input("a_scales"), d.input("b_scales"),
                              d.size("rows"), d.size("columns"), d.size("inner"));
}

KB_DRIVER(call)
