#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t channels, int64_t patch_size, int64_t window_size,
                               int64_t head_size, int64_t num_heads, int64_t mlp_ratio,
                               int64_t cpb_hidden, int64_t depth1, int64_t depth2, int64_t depth3,
                               int64_t depth4, int64_t num_classes);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weights(), d.size("batch_size"),
                              d.size("channels"), d.size("patch_size"), d.size("window_size"),
                              d.size("head_size"), d.size("num_heads"),
                              d.size("mlp_ratio"), d.size("cpb_hidden"), d.size("depth1"),
                              d.size("depth2"), d.size("depth3"), d.size("depth4"),
                              d.size("num_classes"));
}

KB_DRIVER(call)
