#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* X, void* A, void* B, void* C, int64_t batch_size,
                               int64_t seq_length, int64_t n_heads, int64_t d_head, int64_t d_state);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("X"), d.weight("A"), d.weight("B"),
                              d.weight("C"), d.size("batch_size"), d.size("seq_length"),
                              d.size("n_heads"), d.size("d_head"), d.size("d_state"));
}

KB_DRIVER(call)
