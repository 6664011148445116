#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* subtract, void* gemm_weight, void* gemm_bias,
                               int64_t batch_size, int64_t in_features, int64_t out_features, int64_t window);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("subtract"), d.weight("gemm.weight"),
                              d.weight("gemm.bias"), d.size("batch_size"), d.size("in_features"),
                              d.size("out_features"), d.size("window"));
}

KB_DRIVER(call)
