#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image, int64_t groups, int64_t width, int64_t width2,
                               int64_t width3, int64_t width4, int64_t last_width,
                               int64_t repeats2, int64_t repeats3, int64_t repeats4,
                               int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image"), d.size("groups"), d.size("width"), d.size("width2"),
                              d.size("width3"), d.size("width4"), d.size("last_width"),
                              d.size("repeats2"), d.size("repeats3"), d.size("repeats4"),
                              d.size("num_classes"));
}

KB_DRIVER(call)
