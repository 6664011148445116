#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* cosines, void* sines, void* q_scale, void* kv_scale,
                               void* q_down_weight, void* q_up_weight, void* kv_down_weight, void* kv_up_weight,
                               void* project_weight, int64_t batch, int64_t length, int64_t width, int64_t heads,
                               int64_t q_rank, int64_t kv_rank, int64_t plain_size, int64_t rotated_size,
                               int64_t value_size, float epsilon);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("cosines"), d.input("sines"),
                              d.weight("q_scale"), d.weight("kv_scale"), d.weight("q_down.weight"),
                              d.weight("q_up.weight"), d.weight("kv_down.weight"), d.weight("kv_up.weight"),
                              d.weight("project.weight"), d.size("batch"), d.size("length"), d.size("width"),
                              d.size("heads"), d.size("q_rank"), d.size("kv_rank"), d.size("plain_size"),
                              d.size("rotated_size"), d.size("value_size"), d.scalar("epsilon"));
}

KB_DRIVER(call)
