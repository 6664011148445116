// Pipes: fp32, packed halves, fp64, integers, bits, dot products of bytes, divisions, transcendental functions.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kCount = 3'000'017;

template <class T, class F>
__global__ void map(const T* x, T* y, int n, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}

template <class T, class F>
void map_case(conformance::Run& run, const T* x, int n, F f, double ulps) {
    const auto y = run.empty<T>(n);
    run.call([=] { map<<<blocks_for(n, 256), 256>>>(x, y, n, f); });
    run.output("y", y, n, ulps);
}

struct ManyFma {
    __device__ float operator()(float x) const {
        float a = x, b = x + 1.0f, c = x - 1.0f, d = 0.5f * x;
#pragma unroll 8
        for (int k = 0; k < 64; ++k) {
            a = fmaf(a, 0.75f, b), b = fmaf(b, -0.5f, c), c = fmaf(c, 0.625f, d), d = fmaf(d, 0.25f, a);
        }
        return a + b + c + d;
    }
};
struct OneChainFma {
    __device__ float operator()(float x) const {
        float a = x;
#pragma unroll 8
        for (int k = 0; k < 256; ++k) a = fmaf(a, 0.75f, 0.125f);
        return a;
    }
};
struct PreciseFunctions {
    __device__ float operator()(float x) const {
        float v = x;
        for (int k = 0; k < 4; ++k) v = sinf(v) + expf(-v * v) + logf(1.5f + v * v) * tanhf(v);
        return v;
    }
};
struct FastFunctions {
    __device__ float operator()(float x) const {
        float v = x;
        for (int k = 0; k < 4; ++k) {
            const float e = __expf(2.0f * v);
            v = __sinf(v) + __expf(-v * v) + __logf(1.5f + v * v) * __fdividef(e - 1.0f, e + 1.0f);
        }
        return v;
    }
};
struct GeluErf {
    __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
};
struct GeluTanh {
    __device__ float operator()(float x) const {
        const float inner = 0.79788456f * (x + 0.044715f * x * x * x);
        float t;
        asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(inner));
        return 0.5f * x * (1.0f + t);
    }
};
struct Roots {
    __device__ float operator()(float x) const {
        float v = fabsf(x) + 0.5f;
        for (int k = 0; k < 8; ++k) v = sqrtf(v) + 1.0f / (v + 0.25f);
        return v;
    }
};
struct FastRoots {
    __device__ float operator()(float x) const {
        float v = fabsf(x) + 0.5f;
        for (int k = 0; k < 8; ++k) v = v * rsqrtf(v) + __fdividef(1.0f, v + 0.25f);
        return v;
    }
};
struct DoubleSeries {
    __device__ double operator()(double x) const {
        double sum = 1.0, term = 1.0;
        for (int k = 1; k <= 24; ++k) {
            term = term * x * (1.0 / k);
            sum += term;
        }
        return sum;
    }
};
struct SingleSeries {
    __device__ double operator()(double x) const {
        float sum = 1.0f, term = 1.0f, value = static_cast<float>(x);
        for (int k = 1; k <= 24; ++k) {
            term = __fmul_rn(__fmul_rn(term, value), 1.0f / k);
            sum = __fadd_rn(sum, term);
        }
        return sum;
    }
};
struct Bits {
    __device__ unsigned operator()(unsigned x) const {
        unsigned v = x;
        for (int k = 0; k < 16; ++k) {
            v = __brev(v) ^ (v << 13 | v >> 19);
            v += __popc(v) * 0x01000193u + __clz(v) + __ffs(v);
            v = __byte_perm(v, x, 0x6420 + (k & 3)) ^ __funnelshift_l(v, x, k);
        }
        return v;
    }
};
struct Divisions {
    __device__ unsigned operator()(unsigned x) const {
        unsigned v = x | 1u, divisor = (x & 1023u) + 3u;
        for (int k = 0; k < 8; ++k) v = v / divisor * 7u + v % (divisor + k) * 65539u + 12345u;
        return v;
    }
};
struct Shifts {
    __device__ unsigned operator()(unsigned x) const {
        unsigned v = x | 1u;
        const unsigned shift = (x & 7u) + 3u, mask = (1u << shift) - 1u;
        for (int k = 0; k < 8; ++k) v = (v >> shift) * 7u + (v & mask) * 65539u + 12345u;
        return v;
    }
};
struct ByteDots {
    __device__ int operator()(int x) const {
        int sum = 0, a = x, b = x ^ 0x55aa33cc;
        for (int k = 0; k < 32; ++k) {
            sum = __dp4a(a, b, sum);
            a = a * 5 + 1, b = b * 3 + 7;
        }
        return sum;
    }
};
struct ByteProducts {
    __device__ int operator()(int x) const {
        int sum = 0, a = x, b = x ^ 0x55aa33cc;
        for (int k = 0; k < 32; ++k) {
            for (int byte = 0; byte < 32; byte += 8)
                sum += static_cast<int>(static_cast<signed char>(a >> byte)) * static_cast<signed char>(b >> byte);
            a = a * 5 + 1, b = b * 3 + 7;
        }
        return sum;
    }
};
struct LongProducts {
    __device__ unsigned operator()(unsigned x) const {
        unsigned long long v = x | 1ull;
        for (int k = 0; k < 24; ++k) v = v * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<unsigned>(v >> 32);
    }
};

CASE(fma_four_chains) { map_case(run, run.values<float>(kCount, 81), kCount, ManyFma{}, 0); }
CASE(fma_one_chain) { map_case(run, run.values<float>(kCount, 81), kCount, OneChainFma{}, 0); }
// sinf, expf, logf and tanhf are compiled to different approximations of ex2 and lg2 on two devices.
CASE(functions_precise) { map_case(run, run.values<float>(kCount, 81), kCount, PreciseFunctions{}, 256); }
CASE(functions_fast) { map_case(run, run.values<float>(kCount, 81), kCount, FastFunctions{}, 4096); }
CASE(gelu_erf) { map_case(run, run.values<float>(10'000'019, 82), 10'000'019, GeluErf{}, 16); }
CASE(gelu_tanh) { map_case(run, run.values<float>(10'000'019, 82), 10'000'019, GeluTanh{}, 16384); }
CASE(roots_ieee) { map_case(run, run.values<float>(kCount, 81), kCount, Roots{}, 0); }
CASE(roots_fast) { map_case(run, run.values<float>(kCount, 81), kCount, FastRoots{}, 64); }
CASE(series_double) { map_case(run, run.values<double>(kCount, 83), kCount, DoubleSeries{}, 0); }
CASE(series_single) { map_case(run, run.values<double>(kCount, 83), kCount, SingleSeries{}, 0); }
CASE(bit_tricks) { map_case(run, run.integers<unsigned>(kCount, 84, 1u << 31), kCount, Bits{}, 0); }
CASE(integer_divisions) { map_case(run, run.integers<unsigned>(kCount, 84, 1u << 31), kCount, Divisions{}, 0); }
CASE(integer_shifts) { map_case(run, run.integers<unsigned>(kCount, 84, 1u << 31), kCount, Shifts{}, 0); }
CASE(bytes_dp4a) { map_case(run, run.integers<int>(kCount, 85, 1u << 31), kCount, ByteDots{}, 0); }
CASE(bytes_one_by_one) { map_case(run, run.integers<int>(kCount, 85, 1u << 31), kCount, ByteProducts{}, 0); }
CASE(products_64_bit) { map_case(run, run.integers<unsigned>(kCount, 86, 1u << 31), kCount, LongProducts{}, 0); }

__global__ void halves_scalar(const __half* x, __half* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half a = __float2half(0.75f), b = __float2half(0.125f);
    __half v = x[i];
    for (int k = 0; k < 64; ++k) v = __hfma(v, a, b);
    y[i] = v;
}

__global__ void halves_packed(const __half2* x, __half2* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half2 a = __float2half2_rn(0.75f), b = __float2half2_rn(0.125f);
    __half2 v = x[i];
    for (int k = 0; k < 64; ++k) v = __hfma2(v, a, b);
    y[i] = v;
}

__global__ void bfloats_packed(const __nv_bfloat162* x, __nv_bfloat162* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_bfloat162 a = __float2bfloat162_rn(0.75f), b = __float2bfloat162_rn(0.125f);
    __nv_bfloat162 v = x[i];
    for (int k = 0; k < 64; ++k) v = __hmax2(__hfma2(v, a, b), __hmul2(v, a));
    y[i] = v;
}

CASE(half_fma) {
    const int n = 8'000'002;
    const auto x = run.values<__half>(n, 87);
    const auto y = run.empty<__half>(n);
    run.call([=] { halves_scalar<<<blocks_for(n, 256), 256>>>(x, y, n); });
    run.output("y", y, n);
}
CASE(half2_fma) {
    const int n = 8'000'002;
    const auto x = run.values<__half>(n, 87);
    const auto y = run.empty<__half>(n);
    run.call([=] { halves_packed<<<blocks_for(n / 2, 256), 256>>>((const __half2*)x, (__half2*)y, n / 2); });
    run.output("y", y, n);
}
CASE(bfloat2_fma) {
    const int n = 8'000'002;
    const auto x = run.values<__nv_bfloat16>(n, 87, 64);
    const auto y = run.empty<__nv_bfloat16>(n);
    run.call([=] {
        bfloats_packed<<<blocks_for(n / 2, 256), 256>>>((const __nv_bfloat162*)x, (__nv_bfloat162*)y, n / 2);
    });
    run.output("y", y, n);
}

// Accelerations of bodies that all attract each other.
__global__ void bodies_global(const float4* bodies, float4* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 own = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int k = 0; k < n; ++k) {
        const float4 other = bodies[k];
        const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = other.w * inverse * inverse * inverse;
        ax += dx * s, ay += dy * s, az += dz * s;
    }
    y[i] = make_float4(ax, ay, az, 0.0f);
}

__global__ void bodies_shared(const float4* bodies, float4* y, int n) {
    __shared__ float4 tile[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int begin = 0; begin < n; begin += 128) {
        __syncthreads();
        if (begin + static_cast<int>(threadIdx.x) < n) tile[threadIdx.x] = bodies[begin + threadIdx.x];
        __syncthreads();
        const int count = min(128, n - begin);
        for (int k = 0; k < count; ++k) {
            const float4 other = tile[k];
            const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = other.w * inverse * inverse * inverse;
            ax += dx * s, ay += dy * s, az += dz * s;
        }
    }
    if (i < n) y[i] = make_float4(ax, ay, az, 0.0f);
}

CASE(bodies_global) {
    const int n = 9'001;
    const auto x = run.values<float>(4 * n, 88);
    const auto y = run.empty<float>(4 * n);
    run.call([=] { bodies_global<<<blocks_for(n, 128), 128>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 4 * n, 4096);
}
CASE(bodies_shared) {
    const int n = 9'001;
    const auto x = run.values<float>(4 * n, 88);
    const auto y = run.empty<float>(4 * n);
    run.call([=] { bodies_shared<<<blocks_for(n, 128), 128>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 4 * n, 4096);
}

CONFORMANCE_MAIN
