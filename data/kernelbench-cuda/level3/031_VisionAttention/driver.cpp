#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* attn_in_proj_weight, void* attn_in_proj_bias,
                               void* attn_out_proj_weight, void* attn_out_proj_bias, void* norm_weight,
                               void* norm_bias, int64_t batch_size, int64_t embed_dim, int64_t num_heads,
                               int64_t height, int64_t width);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("attn.in_proj_weight"),
                              d.weight("attn.in_proj_bias"), d.weight("attn.out_proj.weight"),
                              d.weight("attn.out_proj.bias"), d.weight("norm.weight"),
                              d.weight("norm.bias"), d.size("batch_size"), d.size("embed_dim"),
                              d.size("num_heads"), d.size("height"), d.size("width"));
}

KB_DRIVER(call)
