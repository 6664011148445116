#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image, int64_t width1, int64_t width2, int64_t width3,
                               int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image"), d.size("width1"), d.size("width2"), d.size("width3"),
                              d.size("num_classes"));
}

KB_DRIVER(call)
