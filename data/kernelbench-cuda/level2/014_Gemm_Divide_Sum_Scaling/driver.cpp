#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* weight, int64_t batch_size, int64_t in_features,
                               int64_t hidden, float scaling_factor);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("weight"), d.size("batch_size"),
                              d.size("in_features"), d.size("hidden"), d.scalar("scaling_factor"));
}

KB_DRIVER(call)
