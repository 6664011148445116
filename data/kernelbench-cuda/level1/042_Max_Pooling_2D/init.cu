// Max pooling: one output per thread; grid z counts the images.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Window {
    int64_t kernel_size, stride, padding, dilation;
    __host__ __device__ int64_t outputs(int64_t extent) const {
        return (extent + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    }
};

__global__ void max_pool_kernel(scalar_t* output, const scalar_t* x, int64_t height, int64_t width, Window window) {
    const int64_t out_height = window.outputs(height), out_width = window.outputs(width);
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (row >= out_height || col >= out_width) return;

    const scalar_t* image = x + blockIdx.z * height * width;
    float maximum = -INFINITY;
    for (int64_t i = 0; i < window.kernel_size; ++i) {
        const int64_t in_row = row * window.stride - window.padding + i * window.dilation;
        if (in_row < 0 || in_row >= height) continue;
        for (int64_t j = 0; j < window.kernel_size; ++j) {
            const int64_t in_col = col * window.stride - window.padding + j * window.dilation;
            if (in_col < 0 || in_col >= width) continue;
            maximum = fmaxf(maximum, to_float(image[in_row * width + in_col]));
        }
    }
    output[(blockIdx.z * out_height + row) * out_width + col] = from_float(maximum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const Window window{kernel_size, stride, padding, dilation};
    const dim3 threads(32, 8);
    const dim3 blocks((window.outputs(width) + threads.x - 1) / threads.x,
                      (window.outputs(height) + threads.y - 1) / threads.y, batch_size * channels);
    max_pool_kernel<<<blocks, threads>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), height, width, window);
    check(cudaGetLastError());
}
