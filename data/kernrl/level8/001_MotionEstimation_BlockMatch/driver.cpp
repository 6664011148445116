#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* frame, void* other, int64_t block_rows, int64_t block_columns,
                               int64_t block, int64_t range);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("frame"), d.input("other"), d.size("block_rows"),
                              d.size("block_columns"), d.size("block"), d.size("range"));
}

KB_DRIVER(call)
