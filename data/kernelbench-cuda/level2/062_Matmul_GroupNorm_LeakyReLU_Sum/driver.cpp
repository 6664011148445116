#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* fc_weight, void* fc_bias, void* gn_weight,
                               void* gn_bias, int64_t batch_size, int64_t in_features, int64_t out_features,
                               int64_t num_groups, float eps, float negative_slope);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("fc.weight"), d.weight("fc.bias"),
                              d.weight("gn.weight"), d.weight("gn.bias"), d.size("batch_size"),
                              d.size("in_features"), d.size("out_features"), d.size("num_groups"), d.scalar("eps"),
                              d.scalar("negative_slope"));
}

KB_DRIVER(call)
