#include <kernelblaster/scalar.cuh>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, MOST_BLOCKS = 528, PACK = 16 / sizeof(scalar_t);

struct alignas(16) Pack {
    scalar_t v[PACK];
};

__device__ float kept_norm;
__device__ float partials[MOST_BLOCKS];
__device__ unsigned arrived;

__device__ float block_sum(float value) {
    __shared__ float partial[THREADS / 32];
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) value += partial[i];
    return value;
}

// Divides everything from `first` on in steps of `step`, and returns this thread's sum of squares.
template <bool WRITE>
__device__ float pass(scalar_t* output, const scalar_t* x, int64_t count, float norm, int64_t first, int64_t step) {
    float sum = 0.0f;
    const int64_t packs = count / PACK;
    for (int64_t i = first; i < packs; i += step) {
        const Pack p = reinterpret_cast<const Pack*>(x)[i];
        Pack q;
#pragma unroll
        for (int e = 0; e < PACK; ++e) {
            const float v = to_float(p.v[e]);
            sum += v * v;
            if (WRITE) q.v[e] = from_float(v / norm);
        }
        if (WRITE) reinterpret_cast<Pack*>(output)[i] = q;
    }
    for (int64_t i = packs * PACK + first; i < count; i += step) {
        const float v = to_float(x[i]);
        sum += v * v;
        if (WRITE) output[i] = from_float(v / norm);
    }
    return sum;
}

__global__ void norm_kernel(const scalar_t* x, int64_t count) {
    __shared__ bool last;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    const float sum = block_sum(pass<false>(nullptr, x, count, 1.0f, first, step));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;

    __threadfence();
    float total = 0.0f;
    for (int i = threadIdx.x; i < static_cast<int>(gridDim.x); i += THREADS) {
        total += *reinterpret_cast<volatile float*>(&partials[i]);
    }
    total = block_sum(total);
    if (threadIdx.x == 0) {
        kept_norm = sqrtf(total);
        arrived = 0;
    }
}

__global__ void divide_kernel(scalar_t* output, const scalar_t* x, int64_t count) {
    pass<true>(output, x, count, kept_norm, static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x,
               static_cast<int64_t>(gridDim.x) * THREADS);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2) {
    const int64_t count = batch_size * features * dim1 * dim2;
    const int64_t wanted = (count / PACK + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(wanted < 1 ? 1 : wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS);
    norm_kernel<<<blocks, THREADS>>>(static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
    divide_kernel<<<blocks, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}
