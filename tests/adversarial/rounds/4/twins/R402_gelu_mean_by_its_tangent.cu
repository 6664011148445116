#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// One block per sample and output channel.
__global__ void plane_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                             int64_t in_channels, int64_t height, int64_t width, int64_t out_channels, int64_t k) {
    extern __shared__ float filter[];
    const int64_t channel = blockIdx.x % out_channels, sample = blockIdx.x / out_channels, taps = in_channels * k * k;
    const int rows = height - k + 1, columns = width - k + 1, depth = in_channels, side = k;
    for (int64_t i = threadIdx.x; i < taps; i += blockDim.x) filter[i] = to_float(weight[channel * taps + i]);
    __syncthreads();
    const float shift = to_float(bias[channel]);
    const scalar_t* image = x + sample * in_channels * height * width;
    const auto conv = [&](int r, int c) {
        float sum = 0.0f;
        const float* f = filter;
        for (int i = 0; i < depth; ++i)
            for (int h = 0; h < side; ++h) {
                const scalar_t* line = image + (i * height + r + h) * width + c;
                for (int w = 0; w < side; ++w) sum += to_float(line[w]) * *f++;
            }
        return sum + shift;
    };
    float plain = 0.0f;
    for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) plain += gelu(conv(i / columns, i % columns));
    plain = block_reduce(plain, Sum());
    if (threadIdx.x == 0) output[blockIdx.x] = from_float(plain / (rows * columns));
}

void launch_gpu_implementation(void* output, void* x, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size) {
    const size_t bytes = in_channels * kernel_size * kernel_size * sizeof(float);
    if (bytes > 47 * 1024) check(cudaFuncSetAttribute(plane_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    plane_kernel<<<static_cast<unsigned>(batch_size * out_channels), 256, bytes>>>(
        out(output), in(x), in(conv_weight), in(conv_bias), in_channels, height, width, out_channels, kernel_size);
    check(cudaGetLastError());
}
