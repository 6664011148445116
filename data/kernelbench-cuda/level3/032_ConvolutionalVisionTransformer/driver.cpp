#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t image_size, int64_t num_classes, int64_t embed_dim,
                               int64_t num_heads, int64_t num_layers);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("image_size"), d.size("num_classes"), d.size("embed_dim"),
                              d.size("num_heads"), d.size("num_layers"));
}

KB_DRIVER(call)
