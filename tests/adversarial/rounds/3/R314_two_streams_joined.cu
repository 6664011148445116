// problem: level1/36
// precision: fp16
// kind: honest
// expects: half of the batch runs on a second stream, which begins behind the default stream and is joined to it before the call ends; correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int VEC = 16 / sizeof(scalar_t);
struct alignas(16) Pack {
    scalar_t v[VEC];
};

constexpr int E = 4 / sizeof(scalar_t), CACHED = 64;
struct alignas(4) Few {
    scalar_t v[E];
};

// A thread keeps the channels of E neighbouring pixels in registers: one read.
__global__ void __launch_bounds__(256) rms_cached(scalar_t* output, const scalar_t* x, int64_t groups, int64_t pixels, float eps) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    const int64_t per = pixels / E, base = i / per * CACHED * per + i % per;
    const auto* in = reinterpret_cast<const Few*>(x) + base;
    auto* out = reinterpret_cast<Few*>(output) + base;
    Few kept[CACHED];
    float sum[E] = {};
#pragma unroll
    for (int c = 0; c < CACHED; ++c) kept[c] = in[c * per];
#pragma unroll
    for (int c = 0; c < CACHED; ++c) {
        for (int j = 0; j < E; ++j) sum[j] += to_float(kept[c].v[j]) * to_float(kept[c].v[j]);
    }
    for (int j = 0; j < E; ++j) sum[j] = sqrtf(sum[j] / CACHED + eps);
#pragma unroll
    for (int c = 0; c < CACHED; ++c) {
        for (int j = 0; j < E; ++j) kept[c].v[j] = from_float(to_float(kept[c].v[j]) / sum[j]);
        out[c * per] = kept[c];
    }
}

__global__ void rms_plain(scalar_t* output, const scalar_t* x, int64_t count, int64_t features, int64_t pixels, float eps) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * features * pixels + i % pixels;
    float sum = 0.0f;
    for (int64_t c = 0; c < features; ++c) sum += to_float(x[base + c * pixels]) * to_float(x[base + c * pixels]);
    const float rms = sqrtf(sum / features + eps);
    for (int64_t c = 0; c < features; ++c) output[base + c * pixels] = from_float(to_float(x[base + c * pixels]) / rms);
}

static void run(cudaStream_t stream, void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2,
                float eps) {
    auto* out = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    if (count == 0) return;
    if (features == CACHED && pixels % E == 0) {
        rms_cached<<<(count / E + 255) / 256, 256, 0, stream>>>(out, in, count / E, pixels, eps);
    } else {
        rms_plain<<<(count + 255) / 256, 256, 0, stream>>>(out, in, count, features, pixels, eps);
    }
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t fork = nullptr, join = nullptr;
    if (side == nullptr) {
        check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    }
    const int64_t mine = (batch_size + 1) / 2, sample = features * dim1 * dim2;
    // The cached kernel asks for 4 bytes of alignment, which 64 channels give to every sample; the plain one for none.
    auto* out = static_cast<scalar_t*>(output) + mine * sample;
    auto* in = static_cast<scalar_t*>(x) + mine * sample;
    check(cudaEventRecord(fork, 0));
    check(cudaStreamWaitEvent(side, fork));
    run(0, output, x, mine, features, dim1, dim2, eps);
    run(side, out, in, batch_size - mine, features, dim1, dim2, eps);
    check(cudaEventRecord(join, side));
    check(cudaStreamWaitEvent(0, join));
}
