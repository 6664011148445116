#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* anchor, void* positive, void* negative, int64_t batch_size,
                               int64_t dim, float margin);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("anchor"), d.input("positive"), d.input("negative"),
                              d.size("batch_size"), d.size("dim"), d.scalar("margin"));
}

KB_DRIVER(call)
