#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* multiply_weight, void* gemm_weight, void* gemm_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("multiply_weight"),
                              d.weight("gemm.weight"), d.weight("gemm.bias"), d.weight("group_norm.weight"),
                              d.weight("group_norm.bias"), d.size("batch_size"), d.size("in_features"),
                              d.size("out_features"), d.size("num_groups"), d.scalar("eps"));
}

KB_DRIVER(call)
