#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias,
                               int64_t batch_size, int64_t seq_len, int64_t n_embd, int64_t n_head);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("c_attn.weight"),
                              d.weight("c_attn.bias"), d.size("batch_size"), d.size("seq_len"),
                              d.size("n_embd"), d.size("n_head"));
}

KB_DRIVER(call)
