#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* clusters, void* clusters2,
                               void* batch_norm_weight, void* batch_norm_bias, int64_t batch_size,
                               int64_t points, int64_t feature_size, int64_t cluster_size);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("clusters"),
                              d.weight("clusters2"), d.weight("batch_norm.weight"),
                              d.weight("batch_norm.bias"), d.size("batch_size"), d.size("points"),
                              d.size("feature_size"), d.size("cluster_size"));
}

KB_DRIVER(call)
