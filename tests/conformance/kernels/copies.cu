// Streaming: how wide, how dense, how aligned and with which cache hint memory is read and written.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr size_t kCount = 10'000'019;

__global__ void copy_one(const float* x, float* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i];
}

__global__ void copy_four(const float* x, float* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (4 * i + 3 < n) {
        reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    } else {
        for (size_t k = 4 * i; k < n; ++k) y[k] = x[k];
    }
}

__global__ void copy_strides(const float* x, float* y, size_t n) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step) y[i] = x[i];
}

__global__ void copy_strides_four(const float4* x, float4* y, size_t n) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += step) y[i] = x[i];
}

__global__ void copy_hinted(const float4* x, float4* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) __stcs(y + i, __ldcs(x + i));
}

__global__ void copy_read_only(const float* __restrict__ x, float* __restrict__ y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = __ldg(x + i);
}

template <class T>
__global__ void copy_typed(const T* x, T* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i];
}

// Column-major walk over a row-major matrix: every lane of a warp is in a row of its own.
__global__ void copy_columns(const float* x, float* y, int rows, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    const int row = i % rows, column = i / rows;
    y[row * columns + column] = x[row * columns + column];
}

__global__ void gather_stride(const float* x, float* y, int n, int stride) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[static_cast<size_t>(i) * stride];
}

__global__ void fill(float4* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
}

__global__ void scale(const float* x, float* y, float a, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}

__global__ void add(const float* x, const float* z, float* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] + z[i];
}

__global__ void relu(const float* x, float* y, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

__global__ void scale_add_relu(const float4* x, const float4* z, float4* y, float a, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    const float4 p = x[i], q = z[i];
    y[i] = make_float4(fmaxf(a * p.x + q.x, 0.0f), fmaxf(a * p.y + q.y, 0.0f), fmaxf(a * p.z + q.z, 0.0f),
                       fmaxf(a * p.w + q.w, 0.0f));
}

// Every block reads the same few megabytes, which the L2 holds.
__global__ void read_again(const float4* x, float* y, int n, int passes) {
    float sum = 0.0f;
    for (int pass = 0; pass < passes; ++pass)
        for (int i = threadIdx.x + ((blockIdx.x * 37 + pass * 11) % 64) * blockDim.x; i < n; i += 64 * blockDim.x) {
            const float4 part = x[i];
            sum += part.x + part.y + part.z + part.w;
        }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

CASE(copy_scalar) {
    const auto x = run.values<float>(kCount, 1);
    const auto y = run.empty<float>(kCount);
    run.call([=] { copy_one<<<blocks_for(kCount, 256), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(copy_float4) {
    const auto x = run.values<float>(kCount, 1);
    const auto y = run.empty<float>(kCount);
    run.call([=] { copy_four<<<blocks_for(kCount, 1024), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(copy_grid_stride) {
    const auto x = run.values<float>(kCount, 1);
    const auto y = run.empty<float>(kCount);
    run.call([=] { copy_strides<<<132 * 8, 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(copy_persistent_float4) {
    const size_t n = kCount / 4;
    const auto x = run.values<float>(4 * n, 1);
    const auto y = run.empty<float>(4 * n);
    run.call([=] { copy_strides_four<<<132 * 2, 1024>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 4 * n);
}

CASE(copy_one_block_per_sm) {
    const size_t n = kCount / 4;
    const auto x = run.values<float>(4 * n, 1);
    const auto y = run.empty<float>(4 * n);
    run.call([=] { copy_strides_four<<<132, 128>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 4 * n);
}

CASE(copy_evict_first) {
    const size_t n = kCount / 4;
    const auto x = run.values<float>(4 * n, 1);
    const auto y = run.empty<float>(4 * n);
    run.call([=] { copy_hinted<<<blocks_for(n, 256), 256>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 4 * n);
}

CASE(copy_ldg) {
    const auto x = run.values<float>(kCount, 1);
    const auto y = run.empty<float>(kCount);
    run.call([=] { copy_read_only<<<blocks_for(kCount, 512), 512>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(copy_misaligned) {
    const auto x = run.values<float>(kCount, 1);
    const auto y = run.empty<float>(kCount);
    run.call([=] { copy_one<<<blocks_for(kCount - 3, 256), 256>>>(x + 3, y + 1, kCount - 3); });
    run.output("y", y + 1, kCount - 3);
}

CASE(copy_half) {
    const auto x = run.values<__half>(kCount, 1);
    const auto y = run.empty<__half>(kCount);
    run.call([=] { copy_typed<<<blocks_for(kCount, 256), 256>>>(x, y, kCount); });
    run.output("y", y, kCount);
}

CASE(copy_half8) {
    const size_t n = kCount / 8;
    const auto x = run.values<__half>(8 * n, 1);
    const auto y = run.empty<__half>(8 * n);
    run.call([=] { copy_typed<<<blocks_for(n, 256), 256>>>((const float4*)x, (float4*)y, n); });
    run.output("y", y, 8 * n);
}

CASE(copy_bytes) {
    const size_t n = 12'000'003;
    const auto x = run.integers<unsigned>(n / 4 + 1, 1, 1u << 31);
    const auto y = run.empty<unsigned>(n / 4 + 1);
    run.call([=] { copy_typed<<<blocks_for(n, 256), 256>>>((const char*)x, (char*)y, n); });
    run.output("y", y, n / 4);
}

CASE(copy_column_walk) {
    const int rows = 2501, columns = 1999;
    const auto x = run.values<float>(rows * columns, 1);
    const auto y = run.empty<float>(rows * columns);
    run.call([=] { copy_columns<<<blocks_for(rows * columns, 256), 256>>>(x, y, rows, columns); });
    run.output("y", y, rows * columns);
}

CASE(gather_stride_2) {
    const int n = 4'000'003;
    const auto x = run.values<float>(2 * n, 1);
    const auto y = run.empty<float>(n);
    run.call([=] { gather_stride<<<blocks_for(n, 256), 256>>>(x, y, n, 2); });
    run.output("y", y, n);
}

CASE(gather_stride_9) {
    const int n = 3'000'007;
    const auto x = run.values<float>(9 * n, 1);
    const auto y = run.empty<float>(n);
    run.call([=] { gather_stride<<<blocks_for(n, 256), 256>>>(x, y, n, 9); });
    run.output("y", y, n);
}

CASE(fill_float4) {
    const size_t n = 5'000'011;
    const auto y = run.empty<float>(4 * n);
    run.call([=] { fill<<<blocks_for(n, 256), 256>>>((float4*)y, n); });
    run.output("y", y, 4 * n);
}

CASE(elementwise_three_kernels) {
    const size_t n = 4 * 1'000'003;
    const auto x = run.values<float>(n, 1);
    const auto z = run.values<float>(n, 2);
    const auto t = run.empty<float>(n);
    const auto y = run.empty<float>(n);
    run.call([=] {
        scale<<<blocks_for(n, 256), 256>>>(x, t, 0.5f, n);
        add<<<blocks_for(n, 256), 256>>>(t, z, y, n);
        relu<<<blocks_for(n, 256), 256>>>(y, y, n);
    });
    run.output("y", y, n);
}

CASE(elementwise_fused) {
    const size_t n = 1'000'003;
    const auto x = run.values<float>(4 * n, 1);
    const auto z = run.values<float>(4 * n, 2);
    const auto y = run.empty<float>(4 * n);
    run.call([=] {
        scale_add_relu<<<blocks_for(n, 256), 256>>>((const float4*)x, (const float4*)z, (float4*)y, 0.5f, n);
    });
    run.output("y", y, 4 * n);
}

CASE(l2_reread) {
    const int n = 256 * 1024, blocks = 132 * 4;
    const auto x = run.values<float>(4 * n, 1);
    const auto y = run.empty<float>(blocks * 256);
    run.call([=] { read_again<<<blocks, 256>>>((const float4*)x, y, n, 4); });
    run.output("y", y, blocks * 256);
}

CASE(many_tiny_launches) {
    const size_t n = 20'011;
    const auto x = run.values<float>(n, 1);
    const auto y = run.empty<float>(n);
    run.call([=] {
        scale<<<blocks_for(n, 256), 256>>>(x, y, 2.0f, n);
        for (int i = 0; i < 24; ++i) add<<<blocks_for(n, 256), 256>>>(x, y, y, n);
    });
    run.output("y", y, n);
}

__global__ void scale_add_often(const float* x, float* y, int times, size_t n) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    const float value = x[i];
    float sum = 2.0f * value;
    for (int k = 0; k < times; ++k) sum = value + sum;
    y[i] = sum;
}

CASE(one_launch_of_the_same) {
    const size_t n = 20'011;
    const auto x = run.values<float>(n, 1);
    const auto y = run.empty<float>(n);
    run.call([=] { scale_add_often<<<blocks_for(n, 256), 256>>>(x, y, 24, n); });
    run.output("y", y, n);
}

CONFORMANCE_MAIN
