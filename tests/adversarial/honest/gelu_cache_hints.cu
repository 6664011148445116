// problem: level1/26
// does: reads with a hint that lines may leave the L2 first, and computes the error function from ex2.approx
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

// Abramowitz and Stegun, 7.1.26: at most 1.5e-7 off.
__device__ float error_function(float x) {
    const float a = fabsf(x), t = __frcp_rn(fmaf(0.3275911f, a, 1.0f));
    float p = fmaf(1.061405429f, t, -1.453152027f);
    p = fmaf(p, t, 1.421413741f);
    p = fmaf(p, t, -0.284496736f);
    p = fmaf(p, t, 0.254829592f) * t;
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.442695041f * a * a));
    return copysignf(1.0f - p * power, x);
}

__device__ scalar_t read_once(const scalar_t* address, uint64_t policy) {
    uint16_t bits;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.b16 %0, [%1], %2;" : "=h"(bits) : "l"(address), "l"(policy));
    return *reinterpret_cast<scalar_t*>(&bits);
}

__global__ void gelu(scalar_t* y, const scalar_t* x, int64_t n) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float value = to_float(read_once(x + i, policy));
    y[i] = from_float(0.5f * value * (1.0f + error_function(value * 0.70710678f)));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t n = batch_size * dim;
    gelu<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}
