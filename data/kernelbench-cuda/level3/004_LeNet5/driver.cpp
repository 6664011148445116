#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv1_weight, void* conv1_bias,
                               void* conv2_weight, void* conv2_bias, void* fc1_weight, void* fc1_bias,
                               void* fc2_weight, void* fc2_bias, void* fc3_weight, void* fc3_bias,
                               int64_t batch_size, int64_t image, int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv1.weight"),
                              d.weight("conv1.bias"), d.weight("conv2.weight"), d.weight("conv2.bias"),
                              d.weight("fc1.weight"), d.weight("fc1.bias"), d.weight("fc2.weight"),
                              d.weight("fc2.bias"), d.weight("fc3.weight"), d.weight("fc3.bias"),
                              d.size("batch_size"), d.size("image"), d.size("num_classes"));
}

KB_DRIVER(call)
