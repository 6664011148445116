#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* bias, void* gemm_weight, void* gemm_bias,
                               void* groupnorm_weight, void* groupnorm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("bias"), d.weight("gemm.weight"),
                              d.weight("gemm.bias"), d.weight("groupnorm.weight"), d.weight("groupnorm.bias"),
                              d.size("batch_size"), d.size("in_features"), d.size("out_features"),
                              d.size("num_groups"), d.scalar("eps"));
}

KB_DRIVER(call)
