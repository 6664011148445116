#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* bias, void* matmul_weight, void* matmul_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps,
                               float divisor);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("bias"), d.weight("matmul.weight"),
                              d.weight("matmul.bias"), d.weight("bn.weight"), d.weight("bn.bias"),
                              d.weight("bn.running_mean"), d.weight("bn.running_var"), d.size("batch_size"),
                              d.size("in_features"), d.size("out_features"), d.scalar("eps"), d.scalar("divisor"));
}

KB_DRIVER(call)
