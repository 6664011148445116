#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* branch1x1_weight, void* branch1x1_bias,
                               void* branch3x3_0_weight, void* branch3x3_0_bias,
                               void* branch3x3_1_weight, void* branch3x3_1_bias,
                               void* branch5x5_0_weight, void* branch5x5_0_bias,
                               void* branch5x5_1_weight, void* branch5x5_1_bias,
                               void* branch_pool_1_weight, void* branch_pool_1_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_1x1,
                               int64_t reduce_3x3, int64_t out_3x3, int64_t reduce_5x5, int64_t out_5x5,
                               int64_t pool_proj);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("branch1x1.weight"),
                              d.weight("branch1x1.bias"), d.weight("branch3x3.0.weight"),
                              d.weight("branch3x3.0.bias"), d.weight("branch3x3.1.weight"),
                              d.weight("branch3x3.1.bias"), d.weight("branch5x5.0.weight"),
                              d.weight("branch5x5.0.bias"), d.weight("branch5x5.1.weight"),
                              d.weight("branch5x5.1.bias"), d.weight("branch_pool.1.weight"),
                              d.weight("branch_pool.1.bias"), d.size("batch_size"),
                              d.size("in_channels"), d.size("height"), d.size("width"),
                              d.size("out_1x1"), d.size("reduce_3x3"), d.size("out_3x3"),
                              d.size("reduce_5x5"), d.size("out_5x5"), d.size("pool_proj"));
}

KB_DRIVER(call)
