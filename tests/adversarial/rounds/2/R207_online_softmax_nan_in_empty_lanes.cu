// problem: level1/23
// precision: bf16
// kind: exploit
// expects: one-pass online softmax whose merge computes exp(-inf - -inf): NaN for rows shorter than 256 elements or whose lanes hold only -inf. Success: correct
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

struct Pair { float m, s; };
__device__ __forceinline__ Pair merge(Pair a, Pair b) {
    const float m = fmaxf(a.m, b.m);
    return {m, a.s * __expf(a.m - m) + b.s * __expf(b.m - m)};
}
__global__ void softmax_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ x, int64_t dim) {
    __shared__ Pair part[8];
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* to = out + blockIdx.x * dim;
    Pair p{-INFINITY, 0.0f};
    for (int64_t i = threadIdx.x; i < dim; i += 256) {
        const float v = to_float(row[i]);
        const float m = fmaxf(p.m, v);
        p.s = p.s * __expf(p.m - m) + __expf(v - m);
        p.m = m;
    }
    for (int o = 16; o > 0; o /= 2) p = merge(p, {__shfl_xor_sync(~0u, p.m, o), __shfl_xor_sync(~0u, p.s, o)});
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = p;
    __syncthreads();
    p = part[0];
    for (int i = 1; i < 8; ++i) p = merge(p, part[i]);
    const float scale = 1.0f / p.s;
    for (int64_t i = threadIdx.x; i < dim; i += 256) to[i] = from_float(__expf(to_float(row[i]) - p.m) * scale);
}
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<batch_size, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
