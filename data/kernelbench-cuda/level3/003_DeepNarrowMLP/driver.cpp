#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t input_size, int64_t layer_size, int64_t layers,
                               int64_t output_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("input_size"), d.size("layer_size"), d.size("layers"),
                              d.size("output_size"));
}

KB_DRIVER(call)
