// KernelBlaster: level1/019, fp16, size medium
// measured speed-up over the start 2.474x (95 %: 2.473 to 2.476), 274.85 us -> 111.09 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// ReLU: each thread starts four independent 16-byte loads (32 elements) before the first use.
// Loads are evict-first, stores are not: input lines leave L2 before output lines.
#include <kernelblaster/scalar.cuh>

#include <cuda_runtime.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

namespace {

constexpr int THREADS = 256, ILP = 4, LANES = 8;  // 8 halves per 16-byte vector
constexpr int BLOCK_VECTORS = THREADS * ILP;

__device__ __forceinline__ unsigned relu2(unsigned bits) {
    const __half2 zero = __float2half2_rn(0.0f);
    __half2 h = *reinterpret_cast<__half2*>(&bits);
    h = __hmax2(h, zero);
    return *reinterpret_cast<unsigned*>(&h);
}
__device__ __forceinline__ uint4 relu8(uint4 v) {
    return make_uint4(relu2(v.x), relu2(v.y), relu2(v.z), relu2(v.w));
}

__global__ void __launch_bounds__(THREADS)
    relu_vector(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, int64_t vectors, int64_t count) {
    const uint4* __restrict__ in = reinterpret_cast<const uint4*>(x);
    uint4* __restrict__ out = reinterpret_cast<uint4*>(output);
    const int64_t block_first = static_cast<int64_t>(blockIdx.x) * BLOCK_VECTORS;
    const int64_t first = block_first + threadIdx.x;

    if (block_first + BLOCK_VECTORS <= vectors) {
        uint4 v[ILP];
#pragma unroll
        for (int i = 0; i < ILP; ++i) v[i] = __ldcs(in + first + i * THREADS);
#pragma unroll
        for (int i = 0; i < ILP; ++i) out[first + i * THREADS] = relu8(v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ILP; ++i) {
            const int64_t at = first + i * THREADS;
            if (at < vectors) out[at] = relu8(__ldcs(in + at));
        }
    }
    if (blockIdx.x == 0) {  // the last elements that fill no vector
        const int64_t at = vectors * LANES + threadIdx.x;
        if (at < count) output[at] = from_float(fmaxf(to_float(x[at]), 0.0f));
    }
}

__global__ void __launch_bounds__(THREADS)
    relu_scalar(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, int64_t count) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < count; i += step)
        output[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    if (count <= 0) return;
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* in = static_cast<const scalar_t*>(x);
    if ((reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x)) % 16 == 0) {
        const int64_t vectors = count / LANES;
        int64_t blocks = (vectors + BLOCK_VECTORS - 1) / BLOCK_VECTORS;
        if (blocks < 1) blocks = 1;
        relu_vector<<<static_cast<unsigned>(blocks), THREADS>>>(out, in, vectors, count);
    } else {
        int64_t blocks = (count + THREADS - 1) / THREADS;
        if (blocks > 16384) blocks = 16384;
        relu_scalar<<<static_cast<unsigned>(blocks), THREADS>>>(out, in, count);
    }
    check(cudaGetLastError());
}
