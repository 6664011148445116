#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* codes, void* scales, int64_t rows, int64_t columns,
                               int64_t groups, int64_t group);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("codes"), d.input("scales"), d.size("rows"),
                              d.size("columns"), d.size("groups"), d.size("group"));
}

KB_DRIVER(call)
