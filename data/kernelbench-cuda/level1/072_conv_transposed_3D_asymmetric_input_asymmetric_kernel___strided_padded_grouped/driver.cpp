#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* conv_transpose3d_weight, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t depth, int64_t height,
                               int64_t width, int64_t kernel_d, int64_t kernel_h, int64_t kernel_w,
                               int64_t stride_d, int64_t stride_h, int64_t stride_w, int64_t padding_d,
                               int64_t padding_h, int64_t padding_w, int64_t output_padding, int64_t groups);

static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.weight("conv_transpose3d.weight"),
                              d.size("batch_size"), d.size("in_channels"), d.size("out_channels"),
                              d.size("depth"), d.size("height"), d.size("width"), d.size("kernel_d"),
                              d.size("kernel_h"), d.size("kernel_w"), d.size("stride_d"), d.size("stride_h"),
                              d.size("stride_w"), d.size("padding_d"), d.size("padding_h"), d.size("padding_w"),
                              d.size("output_padding"), d.size("groups"));
}

KB_DRIVER(call)
