#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* initial_hidden, void* i2h_weight,
                               void* i2h_bias, void* h2o_weight, void* h2o_bias, int64_t batch_size,
                               int64_t input_size, int64_t hidden_size, int64_t output_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("initial_hidden"),
                              d.weight("i2h.weight"), d.weight("i2h.bias"), d.weight("h2o.weight"),
                              d.weight("h2o.bias"), d.size("batch_size"), d.size("input_size"),
                              d.size("hidden_size"), d.size("output_size"));
}

KB_DRIVER(call)
