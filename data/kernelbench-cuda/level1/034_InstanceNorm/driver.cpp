#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("batch_size"), d.size("features"),
                              d.size("dim1"), d.size("dim2"), d.scalar("eps"));
}

KB_DRIVER(call)
