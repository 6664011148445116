// relu(conv(x)) + bias: direct convolution, one output per thread; grid z counts (sample, channel).
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Shape {
    int64_t in_channels, out_channels, height, width, kernel_size;
};

__global__ void conv_relu_bias_kernel(scalar_t* output, const scalar_t* x, const scalar_t* bias,
                                      const scalar_t* conv_weight, const scalar_t* conv_bias, Shape shape) {
    const int64_t out_height = shape.height - shape.kernel_size + 1, out_width = shape.width - shape.kernel_size + 1;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (row >= out_height || col >= out_width) return;
    const int64_t sample = blockIdx.z / shape.out_channels, channel = blockIdx.z % shape.out_channels;
    const int64_t window = shape.kernel_size * shape.kernel_size;

    float sum = to_float(conv_bias[channel]);
    for (int64_t c = 0; c < shape.in_channels; ++c) {
        const scalar_t* image = x + ((sample * shape.in_channels + c) * shape.height + row) * shape.width + col;
        const scalar_t* filter = conv_weight + (channel * shape.in_channels + c) * window;
        for (int64_t i = 0; i < shape.kernel_size; ++i) {
            for (int64_t j = 0; j < shape.kernel_size; ++j) {
                sum += to_float(image[i * shape.width + j]) * to_float(filter[i * shape.kernel_size + j]);
            }
        }
    }
    output[(blockIdx.z * out_height + row) * out_width + col] =
        from_float(fmaxf(sum, 0.0f) + to_float(bias[channel]));
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels, int64_t height,
                               int64_t width, int64_t kernel_size) {
    const Shape shape{in_channels, out_channels, height, width, kernel_size};
    const dim3 threads(32, 8);
    const dim3 blocks((width - kernel_size + threads.x) / threads.x, (height - kernel_size + threads.y) / threads.y,
                      batch_size * out_channels);
    conv_relu_bias_kernel<<<blocks, threads>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(bias),
        static_cast<const scalar_t*>(conv_weight), static_cast<const scalar_t*>(conv_bias), shape);
    check(cudaGetLastError());
}
