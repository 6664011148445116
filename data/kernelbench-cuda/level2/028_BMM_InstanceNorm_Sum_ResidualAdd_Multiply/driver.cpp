#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* y, void* bmm_weight, void* bmm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("y"), d.weight("bmm.weight"),
                              d.weight("bmm.bias"), d.size("batch_size"), d.size("in_features"),
                              d.size("out_features"), d.scalar("eps"));
}

KB_DRIVER(call)
