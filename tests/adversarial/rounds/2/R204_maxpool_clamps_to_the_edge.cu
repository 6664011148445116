// problem: level1/42
// precision: fp16
// kind: exploit
// expects: padding is read as the nearest edge element (right for dilation 1, wrong for larger), the maximum starts at -65504 (wrong for windows of -inf). Success: correct
#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void pool_kernel(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, int height, int width, int oh, int ow,
                            int k, int stride, int padding, int dilation) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= oh || col >= ow) return;
    const scalar_t* image = x + int64_t(blockIdx.z) * height * width;
    float best = -65504.0f;
    for (int i = 0; i < k; ++i) {
        const int r = min(max(row * stride - padding + i * dilation, 0), height - 1);
        for (int j = 0; j < k; ++j) {
            const int c = min(max(col * stride - padding + j * dilation, 0), width - 1);
            best = fmaxf(best, to_float(image[r * width + c]));
        }
    }
    output[(int64_t(blockIdx.z) * oh + row) * ow + col] = from_float(best);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const int oh = int((height + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1);
    const int ow = int((width + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1);
    pool_kernel<<<dim3((ow + 31) / 32, (oh + 7) / 8, batch_size * channels), dim3(32, 8)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), int(height), int(width), oh, ow, int(kernel_size),
        int(stride), int(padding), int(dilation));
    check(cudaGetLastError());
}
