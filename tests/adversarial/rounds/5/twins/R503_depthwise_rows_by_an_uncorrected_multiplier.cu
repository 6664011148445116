#include <kernelblaster/kernels/launch.cuh>

__global__ void __launch_bounds__(256) conv_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, int64_t planes,
                                                   int64_t channels, int64_t height, int64_t width, int64_t kernel,
                                                   int64_t out_height, int64_t out_width) {
    const int64_t points = out_height * out_width, i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
    if (i >= points) return;
    const int64_t row = i / out_width, column = i - row * out_width;
    for (int64_t plane = blockIdx.y; plane < planes; plane += gridDim.y) {
        const scalar_t* from = x + (plane * height + row) * width + column;
        const scalar_t* taps = weight + plane % channels * kernel * kernel;
        float sum = 0.0f;
        for (int64_t a = 0; a < kernel; ++a, from += width, taps += kernel) {
            for (int64_t b = 0; b < kernel; ++b) sum += to_float(from[b]) * to_float(taps[b]);
        }
        output[plane * points + i] = from_float(sum);
    }
}

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t height, int64_t width, int64_t kernel_size) {
    const int64_t out_height = height - kernel_size + 1, out_width = width - kernel_size + 1, planes = batch_size * in_channels;
    if (planes == 0 || out_height <= 0 || out_width <= 0) return;
    const dim3 blocks((out_height * out_width + 255) / 256, planes < 65535 ? planes : 65535);
    conv_kernel<<<blocks, 256>>>(out(output), in(x), in(conv2d_weight), planes, in_channels, height, width, kernel_size,
                                 out_height, out_width);
    check(cudaGetLastError());
}
