#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* gn_weight, void* gn_bias, int64_t batch_size,
                               int64_t features, int64_t num_groups, int64_t dim1, int64_t dim2, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("gn.weight"), d.weight("gn.bias"),
                              d.size("batch_size"), d.size("features"), d.size("num_groups"), d.size("dim1"),
                              d.size("dim2"), d.scalar("eps"));
}

KB_DRIVER(call)
