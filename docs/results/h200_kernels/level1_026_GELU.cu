// KernelBlaster: level1/026, fp16, size medium
// measured speed-up over the start 2.892x (95 %: 2.891 to 2.894), 306.90 us -> 106.11 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// GELU: 16-byte accesses, four independent vectors in flight per thread, branch-free erfc. The input is read once and
// marked evict-first, so that the output lines have L2 to themselves and are written back in long runs.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// gelu(x) = max(x, 0) - |x| * erfc(|x| / sqrt(2)) / 2, erfc from Abramowitz-Stegun 7.1.26 (absolute error 1.5e-7).
__device__ __forceinline__ float gelu(float x) {
    const float u = fabsf(x);
    float t, e;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.23164188f, u, 1.0f)));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * x * -0.72134752f));
    float p = fmaf(0.5307027145f, t, -0.7265760135f);
    p = fmaf(p, t, 0.7107068705f);
    p = fmaf(p, t, -0.142248368f);
    p = fmaf(p, t, 0.127414796f);
    return fmaf(-u, p * (t * e), fmaxf(x, 0.0f));
}

__device__ __forceinline__ unsigned gelu2(unsigned v) {
    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&v));
    const __half2 h = __floats2half2_rn(gelu(f.x), gelu(f.y));
    return *reinterpret_cast<const unsigned*>(&h);
}

__device__ __forceinline__ uint4 gelu8(uint4 v) {
    v.x = gelu2(v.x);
    v.y = gelu2(v.y);
    v.z = gelu2(v.z);
    v.w = gelu2(v.w);
    return v;
}

constexpr int THREADS = 256;
constexpr int UNROLL = 4;

__device__ __forceinline__ uint64_t evict_first_policy() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ uint4 load_once(const uint4* p, uint64_t policy) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p), "l"(policy));
    return v;
}

__global__ void __launch_bounds__(THREADS, 5) gelu_vector_kernel(
    __half* __restrict__ output, const __half* __restrict__ x, int64_t vectors, int tail) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * (THREADS * UNROLL) + threadIdx.x;
    const uint4* in = reinterpret_cast<const uint4*>(x) + i;
    uint4* out = reinterpret_cast<uint4*>(output) + i;
    const uint64_t policy = evict_first_policy();
    if (static_cast<int64_t>(blockIdx.x + 1) * (THREADS * UNROLL) <= vectors) {
        uint4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) v[j] = load_once(in + j * THREADS, policy);
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) out[j * THREADS] = gelu8(v[j]);
    } else {
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (i + j * THREADS < vectors) out[j * THREADS] = gelu8(load_once(in + j * THREADS, policy));
        }
    }
    if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < tail) {
        const int64_t k = vectors * 8 + threadIdx.x;
        output[k] = __float2half_rn(gelu(__half2float(x[k])));
    }
}

__global__ void gelu_scalar_kernel(__half* __restrict__ output, const __half* __restrict__ x, int64_t count) {
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        output[i] = __float2half_rn(gelu(__half2float(x[i])));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    if (count <= 0) return;
    const bool aligned = (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x)) % 16 == 0;
    if (aligned) {
        const int64_t vectors = count / 8;
        int64_t blocks = (vectors + THREADS * UNROLL - 1) / (THREADS * UNROLL);
        if (blocks < 1) blocks = 1;
        gelu_vector_kernel<<<static_cast<unsigned>(blocks), THREADS>>>(
            static_cast<__half*>(output), static_cast<const __half*>(x), vectors, static_cast<int>(count % 8));
    } else {
        int64_t blocks = (count + 1023) / 1024;
        if (blocks > 1000000) blocks = 1000000;
        gelu_scalar_kernel<<<static_cast<unsigned>(blocks), 256>>>(static_cast<__half*>(output),
                                                                   static_cast<const __half*>(x), count);
    }
    check(cudaGetLastError());
}
