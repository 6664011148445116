#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image, int64_t width, int64_t growth_rate, int64_t layers1,
                               int64_t layers2, int64_t layers3, int64_t layers4, int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image"), d.size("width"), d.size("growth_rate"), d.size("layers1"),
                              d.size("layers2"), d.size("layers3"), d.size("layers4"),
                              d.size("num_classes"));
}

KB_DRIVER(call)
