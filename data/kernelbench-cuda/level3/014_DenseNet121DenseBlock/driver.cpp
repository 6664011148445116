#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t num_layers, int64_t num_input_features, int64_t growth_rate,
                               int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("num_layers"), d.size("num_input_features"), d.size("growth_rate"),
                              d.size("height"), d.size("width"));
}

KB_DRIVER(call)
