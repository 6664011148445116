#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* ln_1_weight, void* ln_1_bias,
                               void* attn_c_attn_weight, void* attn_c_attn_bias,
                               void* attn_c_proj_weight, void* attn_c_proj_bias, void* ln_2_weight,
                               void* ln_2_bias, void* mlp_c_fc_weight, void* mlp_c_fc_bias,
                               void* mlp_c_proj_weight, void* mlp_c_proj_bias, int64_t batch_size,
                               int64_t seq_len, int64_t n_embd, int64_t n_head);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("ln_1.weight"),
                              d.weight("ln_1.bias"), d.weight("attn.c_attn.weight"),
                              d.weight("attn.c_attn.bias"), d.weight("attn.c_proj.weight"),
                              d.weight("attn.c_proj.bias"), d.weight("ln_2.weight"),
                              d.weight("ln_2.bias"), d.weight("mlp.c_fc.weight"),
                              d.weight("mlp.c_fc.bias"), d.weight("mlp.c_proj.weight"),
                              d.weight("mlp.c_proj.bias"), d.size("batch_size"), d.size("seq_len"),
                              d.size("n_embd"), d.size("n_head"));
}

KB_DRIVER(call)
