#include <kernelblaster/kernels/launch.cuh>

__device__ __forceinline__ float block_sum(float value) {
    __shared__ float partial[8];
    for (int o = 16; o > 0; o /= 2) value += __shfl_xor_sync(0xffffffffu, value, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < 8; ++w) sum += partial[w];
    return sum;
}

// Sums of the partial sums of one sample, the same in every thread.
__device__ __forceinline__ float total(const float* partial, int chunks) {
    float sum = 0.0f;
    for (int c = threadIdx.x; c < chunks; c += 256) sum += partial[c];
    return block_sum(sum);
}

constexpr int64_t PER_BLOCK = 8192;

__global__ void __launch_bounds__(256) sums_kernel(float* sums, const scalar_t* x, int64_t count, int chunks) {
    const int64_t sample = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const scalar_t* row = x + sample * count;
    float sum = 0.0f;
    for (int64_t i = chunk * 256 + threadIdx.x; i < count; i += static_cast<int64_t>(chunks) * 256) sum += to_float(row[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(256) squares_kernel(float* squares, const float* sums, const scalar_t* x, int64_t count, int chunks) {
    const int64_t sample = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const scalar_t* row = x + sample * count;
    const float mean = total(sums + sample * chunks, chunks) / count;
    float square = 0.0f;
    for (int64_t i = chunk * 256 + threadIdx.x; i < count; i += static_cast<int64_t>(chunks) * 256) {
        const float v = to_float(row[i]) - mean;
        square = fmaf(v, v, square);
    }
    square = block_sum(square);
    if (threadIdx.x == 0) squares[blockIdx.x] = square;
}

__global__ void __launch_bounds__(256) write_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                             const float* sums, const float* squares, int64_t count, int chunks, float eps) {
    const int64_t sample = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const scalar_t* row = x + sample * count;
    scalar_t* to = output + sample * count;
    const float mean = total(sums + sample * chunks, chunks) / count;
    const float scale = rsqrtf(total(squares + sample * chunks, chunks) / count + eps);
    for (int64_t i = chunk * 256 + threadIdx.x; i < count; i += static_cast<int64_t>(chunks) * 256) {
        to[i] = from_float((to_float(row[i]) - mean) * scale * to_float(weight[i]) + to_float(bias[i]));
    }
}

static float* scratch(size_t bytes) {
    static float* memory = nullptr;
    static size_t capacity = 0;
    if (bytes > capacity) {
        check(cudaFree(memory));
        check(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
        capacity = bytes;
    }
    return memory;
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2, most = (count + PER_BLOCK - 1) / PER_BLOCK;
    const int chunks = static_cast<int>(most < 1024 ? most : 1024);
    float* sums = scratch(sizeof(float) * 2 * batch_size * chunks);
    float* squares = sums + batch_size * chunks;
    const unsigned blocks = static_cast<unsigned>(batch_size * chunks);
    sums_kernel<<<blocks, 256>>>(sums, in(x), count, chunks);
    squares_kernel<<<blocks, 256>>>(squares, sums, in(x), count, chunks);
    write_kernel<<<blocks, 256>>>(out(output), in(x), in(ln_weight), in(ln_bias), sums, squares, count, chunks, eps);
    check(cudaGetLastError());
}
