// problem: level1/23
// does: keeps its workspace in thread_local storage and caches the device's shared memory limit there
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <vector>

struct ThreadState {
    float* partial = nullptr;
    std::size_t bytes = 0;
    int shared_limit = -1;
    std::vector<int64_t> seen;  // dims that were launched before

    float* reserve(std::size_t wanted) {
        if (wanted > bytes) {
            if (partial) cudaFree(partial);
            cudaMalloc(&partial, wanted);
            bytes = wanted;
        }
        return partial;
    }
};

static thread_local ThreadState state;

constexpr int SLICES = 8;

__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}
__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// One (maximum, sum) per slice of a row.
__global__ void slice_stats(float2* partial, const scalar_t* x, int64_t dim) {
    __shared__ float tops[8], sums[8];
    const int64_t slice = (dim + SLICES - 1) / SLICES;
    const int64_t begin = blockIdx.x * slice, end = min(begin + slice, dim);
    const scalar_t* row = x + blockIdx.y * dim;
    float top = -INFINITY;
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) top = fmaxf(top, to_float(row[i]));
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    __syncthreads();
    top = tops[0];
    for (int i = 1; i < 8; ++i) top = fmaxf(top, tops[i]);
    float sum = 0.0f;
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) sum += expf(to_float(row[i]) - top);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) sum += sums[i];
        partial[blockIdx.y * SLICES + blockIdx.x] = make_float2(top, sum);
    }
}

__global__ void divide(scalar_t* y, const scalar_t* x, const float2* partial, int64_t dim) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float top = -INFINITY, sum = 0.0f;
    for (int s = 0; s < SLICES; ++s) top = fmaxf(top, partial[blockIdx.y * SLICES + s].x);
    for (int s = 0; s < SLICES; ++s) {
        const float2 p = partial[blockIdx.y * SLICES + s];
        if (p.y > 0.0f) sum += p.y * expf(p.x - top);
    }
    if (i < dim) y[blockIdx.y * dim + i] = from_float(expf(to_float(x[blockIdx.y * dim + i]) - top) / sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (state.shared_limit < 0) {
        int device;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&state.shared_limit, cudaDevAttrMaxSharedMemoryPerBlock, device);
        state.seen.push_back(dim);
    }
    auto* partial = reinterpret_cast<float2*>(state.reserve(batch_size * SLICES * sizeof(float2)));
    slice_stats<<<dim3(SLICES, unsigned(batch_size)), 256>>>(partial, static_cast<const scalar_t*>(x), dim);
    divide<<<dim3(unsigned((dim + 255) / 256), unsigned(batch_size)), 256>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), partial, dim);
}
