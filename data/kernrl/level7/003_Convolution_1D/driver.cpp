#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* taps, int64_t signals, int64_t length, int64_t taps_count);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("taps"), d.size("signals"), d.size("length"),
                              d.size("taps_count"));
}

KB_DRIVER(call)
