#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* h0, void* c0, void* const* weights,
                               int64_t batch_size, int64_t sequence_length, int64_t input_size,
                               int64_t hidden_size, int64_t num_layers, int64_t output_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("h0"), d.input("c0"),
                              d.weights(), d.size("batch_size"), d.size("sequence_length"),
                              d.size("input_size"), d.size("hidden_size"), d.size("num_layers"),
                              d.size("output_size"));
}

KB_DRIVER(call)
