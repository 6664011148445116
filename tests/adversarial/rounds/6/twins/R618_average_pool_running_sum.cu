#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 64;
constexpr int OUTPUTS = 8;  // neighbouring ones, of each thread

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Row {
    const scalar_t* x;
    int length;
    __device__ __forceinline__ float at(int i) const {
        return static_cast<unsigned>(i) < static_cast<unsigned>(length) ? to_float(x[i]) : 0.0f;
    }
    __device__ __forceinline__ float window(int first, int kernel) const {
        float sum = 0.0f;
        #pragma unroll 8
        for (int k = 0; k < kernel; ++k) sum += at(first + k);
        return sum;
    }
};

// stride is that of the problem where STRIDE is 0. Extents of one row fit an int: the launcher sees to it.
template <int STRIDE>
__global__ void __launch_bounds__(THREADS) pool_kernel(scalar_t* output, const scalar_t* x, int64_t rows, int length,
                                                       int width, int kernel, int any_stride, int padding) {
    const int stride = STRIDE > 0 ? STRIDE : any_stride;
    const int strips = (width + OUTPUTS - 1) / OUTPUTS;
    const float divisor = static_cast<float>(kernel);
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < rows * strips;
         i += static_cast<int64_t>(gridDim.x) * THREADS) {
        const int64_t r = i / strips;
        const int begin = static_cast<int>(i - r * strips) * OUTPUTS;
        const Row row{x + r * length, length};
        scalar_t* out = output + r * width + begin;
        const int first = begin * stride - padding;
        float sums[OUTPUTS];
        #pragma unroll
        for (int t = 0; t < OUTPUTS; ++t) sums[t] = row.window(first + t * stride, kernel);
        #pragma unroll
        for (int t = 0; t < OUTPUTS; ++t) {
            if (begin + t < width) out[t] = from_float(sums[t] / divisor);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t length,
                               int64_t kernel_size, int64_t stride, int64_t padding) {
    const int64_t rows = batch_size * channels, width = (length + 2 * padding - kernel_size) / stride + 1;
    if (length + 2 * padding + kernel_size + stride * OUTPUTS > 2147483647) std::exit(1);
    const int64_t strips = (width + OUTPUTS - 1) / OUTPUTS * rows, wanted = (strips + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(wanted < 1048576 ? wanted : 1048576);
    const auto kernel = stride == 1 ? pool_kernel<1> : pool_kernel<0>;
    kernel<<<blocks, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), rows,
                                static_cast<int>(length), static_cast<int>(width), static_cast<int>(kernel_size),
                                static_cast<int>(stride), static_cast<int>(padding));
    check(cudaGetLastError());
}
