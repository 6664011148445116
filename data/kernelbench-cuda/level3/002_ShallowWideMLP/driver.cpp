#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size,
                               int64_t layer_size1, int64_t layer_size2, int64_t output_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("network.0.weight"),
                              d.weight("network.0.bias"), d.weight("network.2.weight"),
                              d.weight("network.2.bias"), d.weight("network.4.weight"),
                              d.weight("network.4.bias"), d.size("batch_size"), d.size("input_size"),
                              d.size("layer_size1"), d.size("layer_size2"), d.size("output_size"));
}

KB_DRIVER(call)
