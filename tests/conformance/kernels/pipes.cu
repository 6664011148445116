// One pipe at a time under full load: halves, integers, divisions, MUFU, conversions, fp64, shuffles, shared memory.
#include "conformance.hpp"

using conformance::blocks_for;

// Four values of a thread go through `f` a number of times: chains that do not depend on each other.
template <class T, class F>
__global__ void rounds_of(const T* x, T* y, int rounds, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    T a = x[i], b = x[i + n], c = x[i + 2 * n], d = x[i + 3 * n];
#pragma unroll 4
    for (int k = 0; k < rounds; ++k) a = f(a), b = f(b), c = f(c), d = f(d);
    y[i] = a, y[i + n] = b, y[i + 2 * n] = c, y[i + 3 * n] = d;
}

template <class T, class F>
void rounds_case(conformance::Run& run, const T* x, T* y, int rounds, F f) {
    run.call([=] { rounds_of<<<132 * 4, 256>>>(x, y, rounds, f); });
}

constexpr int kValues = 132 * 4 * 256 * 4;

template <class F>
void floats_case(conformance::Run& run, int rounds, double ulps, F f) {
    const auto x = run.values<float>(kValues, 21);
    const auto y = run.empty<float>(kValues);
    rounds_case(run, x, y, rounds, f);
    run.output("y", y, kValues, ulps);
}

template <class F>
void integers_case(conformance::Run& run, int rounds, F f) {
    const auto x = run.integers<unsigned>(kValues, 22, 1u << 31);
    const auto y = run.empty<unsigned>(kValues);
    rounds_case(run, x, y, rounds, f);
    run.output("y", y, kValues);
}

struct Fma { __device__ float operator()(float v) const { return fmaf(v, 0.75f, 0.125f); } };
struct Minima { __device__ float operator()(float v) const { return fminf(fmaxf(v, -0.5f) + 0.25f, 0.75f); } };
struct Exponential { __device__ float operator()(float v) const { return exp2f(v) - 1.0f; } };
struct Reciprocal { __device__ float operator()(float v) const { return __frcp_rn(v + 2.5f); } };
struct FastSine { __device__ float operator()(float v) const { return __sinf(v + 1.0f); } };
struct Power { __device__ float operator()(float v) const { return __powf(fabsf(v) + 0.5f, 0.75f); } };
struct Conversions { __device__ float operator()(float v) const { return static_cast<float>(__float2int_rn(v * 1000.0f)) * 0.0011f; } };
struct Multiply { __device__ unsigned operator()(unsigned v) const { return v * 1664525u + 1013904223u; } };
struct MultiplyHigh { __device__ unsigned operator()(unsigned v) const { return __umulhi(v, 2654435761u) + 0x10000001u; } };
struct Logic { __device__ unsigned operator()(unsigned v) const { return (v ^ (v << 5)) + (v >> 3 & 0x0f0f0f0fu); } };
struct ModuloConstant { __device__ unsigned operator()(unsigned v) const { return v % 1000003u * 977u + 5u; } };
struct ModuloVariable {
    unsigned by;
    __device__ unsigned operator()(unsigned v) const { return v % by * 977u + 5u; }
};
struct LongDivision {
    unsigned long long by;
    __device__ unsigned operator()(unsigned v) const { return static_cast<unsigned>((v * 0x100000001ull) / by) ^ v; }
};
struct Counting { __device__ unsigned operator()(unsigned v) const { return v * 5u + __popc(v); } };
struct Compare { __device__ unsigned operator()(unsigned v) const { return (v > 0x40000000u ? v - 0x3fffffffu : v + 77u) ^ 0x55u; } };
struct Shuffle { __device__ float operator()(float v) const { return __shfl_xor_sync(0xffffffffu, v, 5) * 0.5f + v; } };
struct Ballot { __device__ unsigned operator()(unsigned v) const { return __ballot_sync(0xffffffffu, v & 64u) ^ v + 13u; } };
struct DoubleFma { __device__ double operator()(double v) const { return fma(v, 0.75, 0.125); } };
struct HalfFma { __device__ __half operator()(__half v) const { return __hfma(v, __float2half(0.75f), __float2half(0.125f)); } };
struct Half2Fma {
    __device__ __half2 operator()(__half2 v) const { return __hfma2(v, __float2half2_rn(0.75f), __float2half2_rn(0.125f)); }
};
struct Half2Exp { __device__ __half2 operator()(__half2 v) const { return __hmul2(h2exp2(v), __float2half2_rn(0.5f)); } };

CASE(pipe_fma) { floats_case(run, 1000, 0, Fma{}); }
CASE(pipe_minimum) { floats_case(run, 300, 0, Minima{}); }
CASE(pipe_exponential) { floats_case(run, 200, 256, Exponential{}); }
CASE(pipe_reciprocal_ieee) { floats_case(run, 100, 0, Reciprocal{}); }
CASE(pipe_sine) { floats_case(run, 200, 4096, FastSine{}); }
CASE(pipe_power) { floats_case(run, 100, 4096, Power{}); }
CASE(pipe_conversions) { floats_case(run, 100, 0, Conversions{}); }
CASE(pipe_shuffle) { floats_case(run, 150, 64, Shuffle{}); }
CASE(pipe_multiply_integers) { integers_case(run, 2000, Multiply{}); }
CASE(pipe_multiply_high) { integers_case(run, 300, MultiplyHigh{}); }
CASE(pipe_logic) { integers_case(run, 300, Logic{}); }
CASE(pipe_modulo_constant) { integers_case(run, 100, ModuloConstant{}); }
CASE(pipe_modulo_variable) { integers_case(run, 40, ModuloVariable{1'000'003}); }
CASE(pipe_long_division) { integers_case(run, 10, LongDivision{1'000'000'007}); }
CASE(pipe_population_count) { integers_case(run, 200, Counting{}); }
CASE(pipe_compare) { integers_case(run, 300, Compare{}); }
CASE(pipe_ballot) { integers_case(run, 150, Ballot{}); }
CASE(pipe_double_fma) {
    const auto x = run.values<double>(kValues, 23);
    const auto y = run.empty<double>(kValues);
    rounds_case(run, x, y, 200, DoubleFma{});
    run.output("y", y, kValues);
}
CASE(pipe_half_fma) {
    const auto x = run.values<__half>(kValues, 24);
    const auto y = run.empty<__half>(kValues);
    rounds_case(run, x, y, 300, HalfFma{});
    run.output("y", y, kValues);
}
CASE(pipe_half2_fma) {
    const auto x = run.values<__half>(2 * kValues, 24);
    const auto y = run.empty<__half>(2 * kValues);
    rounds_case(run, (const __half2*)x, (__half2*)y, 300, Half2Fma{});
    run.output("y", y, 2 * kValues);
}
CASE(pipe_half2_exponential) {
    const auto x = run.values<__half>(2 * kValues, 24);
    const auto y = run.empty<__half>(2 * kValues);
    rounds_case(run, (const __half2*)x, (__half2*)y, 100, Half2Exp{});
    run.output("y", y, 2 * kValues, 8);
}

// Words of shared memory at a stride, with `Work` independent products and sums for each.
template <int Stride, int Work>
__global__ void banks_and_work(const float* x, float* y, int rounds) {
    __shared__ float words[2048];
    const int t = threadIdx.x;
    for (int i = t; i < 2048; i += 256) words[i] = x[i];
    __syncthreads();
    float sum = 0.0f, own = x[t];
    int at = t % 32 * Stride % 2048;
#pragma unroll 4
    for (int i = 0; i < rounds; ++i) {
        sum += words[at + (i & 7)];
        for (int w = 0; w < Work; ++w) own = fmaf(own, 0.75f, 0.125f);
    }
    y[blockIdx.x * 256 + t] = sum + own;
}

template <int Stride, int Work>
void banks_case(conformance::Run& run) {
    const int blocks = 132 * 6;
    const auto x = run.values<float>(2048, 25);
    const auto y = run.empty<float>(blocks * 256);
    run.call([=] { banks_and_work<Stride, Work><<<blocks, 256>>>(x, y, 256); });
    run.output("y", y, blocks * 256, 4);
}

CASE(banks_1_way_with_work) { banks_case<1, 8>(run); }
CASE(banks_2_way_with_work) { banks_case<2, 8>(run); }
CASE(banks_4_way_with_work) { banks_case<4, 8>(run); }
CASE(banks_8_way_with_work) { banks_case<8, 8>(run); }
CASE(banks_16_way_with_work) { banks_case<16, 8>(run); }
CASE(banks_32_way_with_work) { banks_case<32, 8>(run); }

// Stores to shared memory at a stride, then one load each.
template <int Stride>
__global__ void store_banks(const float* x, float* y, int rounds) {
    __shared__ float words[2048];
    const int t = threadIdx.x, at = t % 32 * Stride % 2048 + t / 32;
    float value = x[t];
    for (int i = 0; i < rounds; ++i) {
        words[at] = value;
        __syncwarp();
        value = words[at] * 0.5f + value;
    }
    y[blockIdx.x * 256 + t] = value;
}

template <int Stride>
void store_banks_case(conformance::Run& run) {
    const int blocks = 132 * 6;
    const auto x = run.values<float>(2048, 26);
    const auto y = run.empty<float>(blocks * 256);
    run.call([=] { store_banks<Stride><<<blocks, 256>>>(x, y, 20); });
    run.output("y", y, blocks * 256, 4);
}

CASE(store_banks_free) { store_banks_case<33>(run); }
CASE(store_banks_8_way) { store_banks_case<8>(run); }
CASE(store_banks_32_way) { store_banks_case<32>(run); }

CONFORMANCE_MAIN
