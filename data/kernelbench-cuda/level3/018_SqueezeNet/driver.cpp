#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image, int64_t width, int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image"), d.size("width"), d.size("num_classes"));
}

KB_DRIVER(call)
