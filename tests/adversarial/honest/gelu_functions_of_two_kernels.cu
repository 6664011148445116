// problem: level1/26
// does: two kernels call the same functions, which are not inlined: one recursive, one by a pointer, one of a template,
//   so that ptxas tells of each of them once for each kernel
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cassert>

// Of a polynomial, highest power first.
__device__ __noinline__ float horner(const float* coefficients, int count, float x) {
    return count == 1 ? coefficients[0] : horner(coefficients + 1, count - 1, x) * x + coefficients[0];
}

// Where erf is one, and of infinities.
template <typename T>
__device__ __noinline__ T gelu_far(T x) {
    return x > T(0) ? x : -T(0);
}

__device__ __noinline__ float gelu_small(float x) {
    const float erf_series[4] = {1.1283791671f, -0.3761263890f, 0.1128379167f, -0.0268661706f};
    const float t = x * 0.70710678f;
    return 0.5f * x * (1.0f + t * horner(erf_series, 4, t * t));
}

__device__ __noinline__ float gelu_plain(float x) { return x * normcdff(x); }

using Function = float (*)(float);

__device__ float gelu(float x) {
    if (fabsf(x) > 16.0f || isinf(x)) return gelu_far(x);
    const Function chosen = fabsf(x) < 0.05f ? gelu_small : gelu_plain;
    return chosen(x);
}

__global__ void gelu_scalar(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(gelu(to_float(x[i])));
}

// Sixteen bytes per thread; `n` counts vectors.
__global__ void __launch_bounds__(256) gelu_vector(uint4* y, const uint4* x, int64_t n) {
    constexpr int kLanes = sizeof(uint4) / sizeof(scalar_t);
    union Pack {
        uint4 raw;
        scalar_t item[kLanes];
        __device__ Pack() {}
    };
    assert(blockDim.x == 256);
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pack p;
    p.raw = x[i];
    for (int j = 0; j < kLanes; ++j) p.item[j] = from_float(gelu(to_float(p.item[j])));
    y[i] = p.raw;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    constexpr int64_t lanes = sizeof(uint4) / sizeof(scalar_t);
    const int64_t n = batch_size * dim, vectors = n / lanes;
    if (n % lanes == 0) {
        gelu_vector<<<unsigned((vectors + 255) / 256), 256>>>(static_cast<uint4*>(output),
                                                              static_cast<const uint4*>(x), vectors);
    } else {
        gelu_scalar<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output),
                                                        static_cast<const scalar_t*>(x), n);
    }
}
