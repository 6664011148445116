#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* cosines, void* sines, void* q_weight, void* k_weight,
                               void* v_weight, void* project_weight, int64_t batch, int64_t length, int64_t width,
                               int64_t kv_heads, int64_t group, int64_t head_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("cosines"), d.input("sines"),
                              d.weight("q.weight"), d.weight("k.weight"), d.weight("v.weight"),
                              d.weight("project.weight"), d.size("batch"), d.size("length"), d.size("width"),
                              d.size("kv_heads"), d.size("group"), d.size("head_size"));
}

KB_DRIVER(call)
