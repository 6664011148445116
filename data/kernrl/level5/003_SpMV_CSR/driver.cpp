#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* values, void* columns_of, void* row_starts, void* x, int64_t rows,
                               int64_t columns, int64_t mean_length);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("values"), d.input("columns_of"), d.input("row_starts"),
                              d.input("x"), d.size("rows"), d.size("columns"), d.size("mean_length"));
}

KB_DRIVER(call)
