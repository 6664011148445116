#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int V = 16 / sizeof(scalar_t);
union Pack {
    uint4 raw;
    scalar_t v[V];
    __device__ Pack() {}
};

template <int N>
struct alignas(N * sizeof(scalar_t)) Few {
    scalar_t v[N];
};

// N neighbouring pixels a thread; channels are read twice, the second time from L2.
template <int N>
__global__ __launch_bounds__(256, 4) void rms_norm(scalar_t* out, const scalar_t* x, int64_t units, int64_t features, int64_t pixels, float eps) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= units) return;
    const int64_t per = pixels / N, base = i / per * features * pixels + i % per * N;
    float sum[N] = {};
#pragma unroll 8
    for (int64_t c = 0; c < features; ++c) {
        const Few<N> p = *reinterpret_cast<const Few<N>*>(x + base + c * pixels);
#pragma unroll
        for (int j = 0; j < N; ++j) sum[j] += to_float(p.v[j]) * to_float(p.v[j]);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] = sqrtf(sum[j] / features + eps);
#pragma unroll 8
    for (int64_t c = 0; c < features; ++c) {
        Few<N> p = *reinterpret_cast<const Few<N>*>(x + base + c * pixels);
#pragma unroll
        for (int j = 0; j < N; ++j) p.v[j] = from_float(__fdividef(to_float(p.v[j]), sum[j]));
        if constexpr (N == 2 && sizeof(scalar_t) == 2) {
            __stcs(reinterpret_cast<unsigned*>(out + base + c * pixels), *reinterpret_cast<unsigned*>(&p));
        } else {
            *reinterpret_cast<Few<N>*>(out + base + c * pixels) = p;
        }
    }
}

template <int N>
static void run(void* output, void* x, int64_t batch_size, int64_t features, int64_t pixels, float eps) {
    const int64_t units = batch_size * (pixels / N);
    rms_norm<N><<<static_cast<unsigned>((units + 255) / 256), 256>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), units, features, pixels, eps);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2,
                               float eps) {
    const int64_t pixels = dim1 * dim2;
    pixels % 2 == 0 ? run<2>(output, x, batch_size, features, pixels, eps)
                    : run<1>(output, x, batch_size, features, pixels, eps);
}
