#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* table, void* indices, int64_t table_size, int64_t count);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("table"), d.input("indices"), d.size("table_size"),
                              d.size("count"));
}

KB_DRIVER(call)
