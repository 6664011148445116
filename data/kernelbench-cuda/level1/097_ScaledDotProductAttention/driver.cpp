#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("Q"), d.input("K"), d.input("V"),
                              d.size("batch_size"), d.size("heads"), d.size("seq_len"), d.size("head_size"));
}

KB_DRIVER(call)
