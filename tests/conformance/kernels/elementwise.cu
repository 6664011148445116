// Activations and what goes with them: scalar, wide and packed; fused and in several launches.
// Exponentials and hyperbolic tangents are approximations: outputs state their ulps.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kCount = 6'000'000;

template <class T, class F>
__global__ void each(const T* x, T* y, int n, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}

template <class F>
__global__ void each4(const float4* x, float4* y, int n, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 v = x[i];
    y[i] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
}

struct Silu { __device__ float operator()(float v) const { return v / (1.0f + __expf(-v)); } };
struct Mish { __device__ float operator()(float v) const { return v * tanhf(log1pf(expf(v))); } };
struct Gelu {
    __device__ float operator()(float v) const { return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v))); }
};
struct Relu { __device__ float operator()(float v) const { return fmaxf(v, 0.0f); } };
struct Sigmoid { __device__ __half operator()(__half v) const { return __float2half(1.0f / (1.0f + __expf(-__half2float(v)))); } };

template <class F>
void float_case(conformance::Run& run, F f, bool wide, double ulps) {
    const auto x = run.values<float>(kCount, 41);
    const auto y = run.empty<float>(kCount);
    if (wide) run.call([=] { each4<<<blocks_for(kCount / 4, 256), 256>>>((const float4*)x, (float4*)y, kCount / 4, f); });
    else run.call([=] { each<<<blocks_for(kCount, 256), 256>>>(x, y, kCount, f); });
    run.output("y", y, kCount, ulps);
}

CASE(silu_scalar) { float_case(run, Silu{}, false, 256); }
CASE(silu_float4) { float_case(run, Silu{}, true, 256); }
CASE(mish_scalar) { float_case(run, Mish{}, false, 256); }
CASE(gelu_exact_tanh) { float_case(run, Gelu{}, false, 256); }
CASE(gelu_exact_tanh_float4) { float_case(run, Gelu{}, true, 256); }
CASE(relu_scalar) { float_case(run, Relu{}, false, 0); }
CASE(relu_float4) { float_case(run, Relu{}, true, 0); }

CASE(sigmoid_half_scalar) {
    const auto x = run.values<__half>(kCount, 42);
    const auto y = run.empty<__half>(kCount);
    run.call([=] { each<<<blocks_for(kCount, 256), 256>>>(x, y, kCount, Sigmoid{}); });
    run.output("y", y, kCount, 2);
}

__global__ void sigmoid_half8(const uint4* x, uint4* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 v = x[i];
    __half2* pairs = reinterpret_cast<__half2*>(&v);
    for (int p = 0; p < 4; ++p) {
        const float2 w = __half22float2(pairs[p]);
        pairs[p] = __floats2half2_rn(1.0f / (1.0f + __expf(-w.x)), 1.0f / (1.0f + __expf(-w.y)));
    }
    y[i] = v;
}

CASE(sigmoid_half8) {
    const auto x = run.values<__half>(kCount, 42);
    const auto y = run.empty<__half>(kCount);
    run.call([=] { sigmoid_half8<<<blocks_for(kCount / 8, 256), 256>>>((const uint4*)x, (uint4*)y, kCount / 8); });
    run.output("y", y, kCount, 2);
}

// y = gelu(x + bias of its column) * scale + residual.
__global__ void add_bias(const float* x, const float* bias, float* y, int n, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + bias[i % columns];
}
__global__ void add_residual(const float* x, const float* residual, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.5f + residual[i];
}
__global__ void bias_gelu_residual(const float4* x, const float4* bias, const float4* residual, float4* y, int n, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Gelu gelu;
    const float4 v = x[i], b = bias[i % columns], r = residual[i];
    y[i] = make_float4(gelu(v.x + b.x) * 0.5f + r.x, gelu(v.y + b.y) * 0.5f + r.y, gelu(v.z + b.z) * 0.5f + r.z,
                       gelu(v.w + b.w) * 0.5f + r.w);
}

CASE(bias_gelu_residual_apart) {
    const int columns = 1500;
    const auto x = run.values<float>(kCount, 43), bias = run.values<float>(columns, 44);
    const auto residual = run.values<float>(kCount, 45);
    const auto between = run.empty<float>(kCount), y = run.empty<float>(kCount);
    run.call([=] {
        const unsigned blocks = blocks_for(kCount, 256);
        add_bias<<<blocks, 256>>>(x, bias, between, kCount, columns);
        each<<<blocks, 256>>>((const float*)between, between, kCount, Gelu{});
        add_residual<<<blocks, 256>>>(between, residual, y, kCount);
    });
    run.output("y", y, kCount, 256);
}
CASE(bias_gelu_residual_fused) {
    const int columns = 1500;
    const auto x = run.values<float>(kCount, 43), bias = run.values<float>(columns, 44);
    const auto residual = run.values<float>(kCount, 45), y = run.empty<float>(kCount);
    run.call([=] {
        bias_gelu_residual<<<blocks_for(kCount / 4, 256), 256>>>((const float4*)x, (const float4*)bias,
                                                                 (const float4*)residual, (float4*)y, kCount / 4, columns / 4);
    });
    run.output("y", y, kCount, 256);
}

// Dropout whose mask is a hash of the place.
__device__ unsigned hashed(unsigned v) {
    v ^= v >> 16, v *= 0x7feb352du, v ^= v >> 15, v *= 0x846ca68bu;
    return v ^ v >> 16;
}
__global__ void dropout(const float* x, float* y, int n, unsigned seed) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (hashed(i + seed) & 3u) == 0u ? 0.0f : x[i] * 1.25f;
}
// Ten rounds of Philox give four random words.
__global__ void dropout_philox(const float4* x, float4* y, int n, unsigned seed) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned c0 = i, c1 = 0, c2 = 7, c3 = 11, k0 = seed, k1 = seed ^ 0x5bd1e995u;
    for (int r = 0; r < 10; ++r) {
        const unsigned h0 = __umulhi(0xd2511f53u, c0), l0 = 0xd2511f53u * c0;
        const unsigned h1 = __umulhi(0xcd9e8d57u, c2), l1 = 0xcd9e8d57u * c2;
        c0 = h1 ^ c1 ^ k0, c1 = l1, c2 = h0 ^ c3 ^ k1, c3 = l0;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    const float4 v = x[i];
    y[i] = make_float4(c0 & 3u ? v.x * 1.25f : 0.0f, c1 & 3u ? v.y * 1.25f : 0.0f, c2 & 3u ? v.z * 1.25f : 0.0f,
                       c3 & 3u ? v.w * 1.25f : 0.0f);
}

CASE(dropout_hash) {
    const auto x = run.values<float>(kCount, 46), y = run.empty<float>(kCount);
    run.call([=] { dropout<<<blocks_for(kCount, 256), 256>>>(x, y, kCount, 12345u); });
    run.output("y", y, kCount);
}
CASE(dropout_philox_float4) {
    const auto x = run.values<float>(kCount, 46), y = run.empty<float>(kCount);
    run.call([=] { dropout_philox<<<blocks_for(kCount / 4, 256), 256>>>((const float4*)x, (float4*)y, kCount / 4, 12345u); });
    run.output("y", y, kCount);
}

// silu(a) * b, with a and b in the halves of each row.
__global__ void swiglu(const float* x, float* y, int rows, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    const int row = i / columns, column = i % columns;
    const float a = x[row * 2 * columns + column], b = x[row * 2 * columns + columns + column];
    y[i] = a / (1.0f + expf(-a)) * b;
}
__global__ void swiglu_rows(const float4* x, float4* y, int columns) {
    const float4 *a = x + blockIdx.x * 2 * columns, *b = a + columns;
    const Silu silu;
    for (int k = threadIdx.x; k < columns; k += blockDim.x) {
        const float4 v = a[k], w = b[k];
        y[blockIdx.x * columns + k] = make_float4(silu(v.x) * w.x, silu(v.y) * w.y, silu(v.z) * w.z, silu(v.w) * w.w);
    }
}

CASE(swiglu_scalar) {
    const int rows = 1501, columns = 2000;
    const auto x = run.values<float>(2 * rows * columns, 47), y = run.empty<float>(rows * columns);
    run.call([=] { swiglu<<<blocks_for(rows * columns, 256), 256>>>(x, y, rows, columns); });
    run.output("y", y, rows * columns, 256);
}
CASE(swiglu_rows_float4) {
    const int rows = 1501, columns = 2000;
    const auto x = run.values<float>(2 * rows * columns, 47), y = run.empty<float>(rows * columns);
    run.call([=] { swiglu_rows<<<rows, 256>>>((const float4*)x, (float4*)y, columns / 4); });
    run.output("y", y, rows * columns, 256);
}

// Bytes with a scale per row, and back.
__global__ void quantize_rows(const float* x, int* y, int columns) {
    __shared__ float warps[8];
    const float* in = x + static_cast<size_t>(blockIdx.x) * columns;
    float most = 0.0f;
    for (int k = threadIdx.x; k < columns; k += 256) most = fmaxf(most, fabsf(in[k]));
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < 8; ++w) most = fmaxf(most, warps[w]);
    const float scale = 127.0f / most;
    for (int k = threadIdx.x; k < columns / 4; k += 256) {
        unsigned word = 0;
        for (int b = 0; b < 4; ++b) word |= (static_cast<unsigned>(__float2int_rn(in[4 * k + b] * scale)) & 255u) << 8 * b;
        y[static_cast<size_t>(blockIdx.x) * (columns / 4) + k] = static_cast<int>(word);
    }
}

CASE(quantize_rows) {
    const int rows = 2003, columns = 3000;
    const auto x = run.values<float>(rows * columns, 48);
    const auto y = run.empty<int>(rows * columns / 4);
    run.call([=] { quantize_rows<<<rows, 256>>>(x, y, columns); });
    run.output("y", y, rows * columns / 4);
}

// Rotary positions: pairs of a head's channels are rotated by an angle that follows from place and channel.
__global__ void rotary(const float* x, float* y, int tokens, int heads, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, half = width / 2;
    if (i >= tokens * heads * half) return;
    const int channel = i % half, head = i / half % heads, token = i / half / heads;
    const float angle = token * powf(10000.0f, -2.0f * channel / width);
    const int at = (token * heads + head) * width + channel;
    const float a = x[at], b = x[at + half], s = sinf(angle), c = cosf(angle);
    y[at] = a * c - b * s, y[at + half] = a * s + b * c;
}
// The same with tables of sines and cosines.
__global__ void rotary_tables(const float* x, const float2* table, float* y, int tokens, int heads, int width) {
    const int token = blockIdx.x, half = width / 2;
    for (int k = threadIdx.x; k < heads * half; k += blockDim.x) {
        const int channel = k % half, head = k / half, at = (token * heads + head) * width + channel;
        const float2 sc = table[token * half + channel];
        const float a = x[at], b = x[at + half];
        y[at] = a * sc.y - b * sc.x, y[at + half] = a * sc.x + b * sc.y;
    }
}

CASE(rotary_computed) {
    const int tokens = 999, heads = 16, width = 128;
    const auto x = run.values<float>(tokens * heads * width, 49), y = run.empty<float>(tokens * heads * width);
    run.call([=] { rotary<<<blocks_for(tokens * heads * width / 2, 256), 256>>>(x, y, tokens, heads, width); });
    run.output("y", y, tokens * heads * width, 65536);
}
CASE(rotary_from_tables) {
    const int tokens = 999, heads = 16, width = 128;
    const auto x = run.values<float>(tokens * heads * width, 49), y = run.empty<float>(tokens * heads * width);
    const auto table = run.values<float>(tokens * width, 50);
    run.call([=] { rotary_tables<<<tokens, 256>>>(x, (const float2*)table, y, tokens, heads, width); });
    run.output("y", y, tokens * heads * width, 8);
}

CONFORMANCE_MAIN
