#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t length,
                               int64_t kernel_size, int64_t stride, int64_t padding, int64_t dilation);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("batch_size"), d.size("channels"),
                              d.size("length"), d.size("kernel_size"), d.size("stride"), d.size("padding"),
                              d.size("dilation"));
}

KB_DRIVER(call)
