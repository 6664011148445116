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
union Pack { uint4 raw; scalar_t v[VEC]; };

__global__ void relu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const int64_t packs = count / VEC;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < packs; i += stride) {
        Pack p;
        p.raw = reinterpret_cast<const uint4*>(x)[i];
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            const float f = to_float(p.v[j]);
            p.v[j] = from_float(f < 0.0f ? 0.0f : f);  // NaN stays NaN
        }
        reinterpret_cast<uint4*>(out)[i] = p.raw;
    }
    for (int64_t i = packs * VEC + first; i < count; i += stride) {
        const float f = to_float(x[i]);
        out[i] = from_float(f < 0.0f ? 0.0f : f);
    }
}

static void relu(void* out, void* x, int64_t count) {
    int64_t blocks = (count / VEC + 255) / 256;
    if (blocks < 1) blocks = 1;
    if (blocks > 132 * 64) blocks = 132 * 64;
    relu_kernel<<<blocks, 256>>>(static_cast<scalar_t*>(out), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    relu(output, x, batch_size * dim);
}
