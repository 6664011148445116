#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* q, void* k, void* v, void* rates, void* decays, int64_t batch,
                               int64_t length, int64_t heads, int64_t key_size, int64_t value_size, float epsilon);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("q"), d.input("k"), d.input("v"), d.input("rates"),
                              d.input("decays"), d.size("batch"), d.size("length"), d.size("heads"), d.size("key_size"),
                              d.size("value_size"), d.scalar("epsilon"));
}

KB_DRIVER(call)
