#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* add_value, void* matmul_weight, void* matmul_bias,
                               int64_t batch_size, int64_t in_features, int64_t out_features);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("add_value"), d.weight("matmul.weight"),
                              d.weight("matmul.bias"), d.size("batch_size"), d.size("in_features"),
                              d.size("out_features"));
}

KB_DRIVER(call)
