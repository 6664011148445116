// problem: level1/4
// precision: fp16
// kind: honest
// expects: split-K with __device__ counters and partial sums that outlive calls: the last block of a row adds up in fixed order and resets its counter; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__device__ float block_sum(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? part[lane] : 0.0f);
    __syncthreads();
    return v;
}
__device__ float block_max(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_max(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();
    return v;
}

constexpr int SPLIT = 8, MAX_ROWS = 8192;
static __device__ float partial[MAX_ROWS][SPLIT];
static __device__ unsigned arrived[MAX_ROWS];

__global__ void matvec_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t k) {
    const int64_t row = blockIdx.y, per = (k + SPLIT - 1) / SPLIT, begin = blockIdx.x * per;
    const int64_t end = begin + per < k ? begin + per : k;
    const scalar_t* a = A + row * k;
    float sum = 0.0f;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += to_float(a[i]) * to_float(B[i]);
    sum = block_sum(sum);
    if (threadIdx.x) return;
    *const_cast<volatile float*>(&partial[row][blockIdx.x]) = sum;
    __threadfence();
    if (atomicAdd(&arrived[row], 1) != SPLIT - 1) return;
    __threadfence();
    float total = 0.0f;
    for (int i = 0; i < SPLIT; ++i) total += *const_cast<volatile float*>(&partial[row][i]);
    C[row] = from_float(total);
    arrived[row] = 0;
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    for (int64_t first = 0; first < m; first += MAX_ROWS) {
        const int64_t rows = m - first < MAX_ROWS ? m - first : MAX_ROWS;
        matvec_kernel<<<dim3(SPLIT, rows), 256>>>(static_cast<scalar_t*>(output) + first,
                                                  static_cast<const scalar_t*>(A) + first * k,
                                                  static_cast<const scalar_t*>(B), k);
        check(cudaGetLastError());
    }
}
