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

__global__ void scale_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m) {
    uint64_t keep, drop;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(drop));
    const int64_t row = blockIdx.y;
    const float a = to_float(A[row]);
    const scalar_t* b = B + row * m;
    scalar_t* c = C + row * m;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const int64_t packs = m % VEC ? 0 : m / VEC;
    for (int64_t i = first; i < packs; i += stride) {
        Pack p;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(p.raw.x), "=r"(p.raw.y), "=r"(p.raw.z), "=r"(p.raw.w)
                     : "l"(reinterpret_cast<const uint4*>(b) + i), "l"(keep));
        for (int j = 0; j < VEC; ++j) p.v[j] = from_float(a * to_float(p.v[j]));
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                         reinterpret_cast<uint4*>(c) + i),
                     "r"(p.raw.x), "r"(p.raw.y), "r"(p.raw.z), "r"(p.raw.w), "l"(drop)
                     : "memory");
    }
    for (int64_t i = packs * VEC + first; i < m; i += stride) c[i] = from_float(a * to_float(b[i]));
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    const dim3 blocks((m / VEC + 255) / 256 + 1, n);
    scale_kernel<<<blocks, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                  static_cast<const scalar_t*>(B), m);
    check(cudaGetLastError());
}
