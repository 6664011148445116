#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image_size, int64_t patch_size, int64_t num_classes,
                               int64_t dim, int64_t depth, int64_t heads, int64_t mlp_dim,
                               int64_t channels);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image_size"), d.size("patch_size"), d.size("num_classes"),
                              d.size("dim"), d.size("depth"), d.size("heads"), d.size("mlp_dim"),
                              d.size("channels"));
}

KB_DRIVER(call)
