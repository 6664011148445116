#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* linear1_weight, void* linear1_bias,
                               void* linear2_weight, void* linear2_bias, int64_t batch_size, int64_t in_features,
                               int64_t hidden, int64_t out_features);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("linear1.weight"),
                              d.weight("linear1.bias"), d.weight("linear2.weight"), d.weight("linear2.bias"),
                              d.size("batch_size"), d.size("in_features"), d.size("hidden"),
                              d.size("out_features"));
}

KB_DRIVER(call)
