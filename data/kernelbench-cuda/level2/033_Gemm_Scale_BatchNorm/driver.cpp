#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* scale, void* gemm_weight, void* gemm_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("scale"), d.weight("gemm.weight"),
                              d.weight("gemm.bias"), d.weight("bn.weight"), d.weight("bn.bias"),
                              d.weight("bn.running_mean"), d.weight("bn.running_var"), d.size("batch_size"),
                              d.size("in_features"), d.size("out_features"), d.scalar("eps"));
}

KB_DRIVER(call)
