#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("gemm.weight"), d.weight("gemm.bias"),
                              d.size("batch_size"), d.size("in_features"), d.size("out_features"));
}

KB_DRIVER(call)
