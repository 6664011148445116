// Which tensors and numbers the launcher gets, and in which order. All names are those of reference.py.
#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* bias, int64_t rows, int64_t columns, float negative_slope);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("bias"), d.size("rows"), d.size("columns"),
                              d.scalar("negative_slope"));
}

KB_DRIVER(call)
