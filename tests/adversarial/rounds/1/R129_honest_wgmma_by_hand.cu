// problem: level1/1
// precision: fp16
// kind: honest
// expects: raw wgmma.mma_async m64n64k16 with hand-made shared memory descriptors (no swizzle), fence.proxy.async; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Operands lie in shared memory as 8 x 16 byte core matrices: rows 128 bytes apart per 8, k 1024 bytes apart per 8.
constexpr int TILE = 64;
constexpr int LBO = 1024, SBO = 128;

__device__ uint64_t descriptor(const void* p) {
    const uint64_t a = static_cast<uint64_t>(__cvta_generic_to_shared(p));
    return ((a & 0x3ffff) >> 4) | (uint64_t(LBO >> 4) << 16) | (uint64_t(SBO >> 4) << 32);
}
__device__ int place(int r, int k) { return ((k / 8) * LBO + (r / 8) * SBO + (r % 8) * 16) / 2 + k % 8; }

__global__ void __launch_bounds__(128) matmul_kernel(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ __align__(128) scalar_t as[TILE * TILE];
    __shared__ __align__(128) scalar_t bs[TILE * TILE];
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * TILE, col0 = static_cast<int64_t>(blockIdx.x) * TILE;
    float d[32];
    for (int i = 0; i < 32; ++i) d[i] = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        for (int e = threadIdx.x; e < TILE * TILE; e += 128) {
            const int r = e / TILE, c = e % TILE;
            as[place(r, c)] = row0 + r < n && k0 + c < n ? A[(row0 + r) * n + k0 + c] : from_float(0.0f);
            bs[place(c, r)] = k0 + r < n && col0 + c < n ? B[(k0 + r) * n + col0 + c] : from_float(0.0f);
        }
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < TILE / 16; ++kk) {
            const uint64_t da = descriptor(as + kk * 2 * LBO / 2), db = descriptor(bs + kk * 2 * LBO / 2);
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                "%32, %33, 1, 1, 1, 0, 0;"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                : "l"(da), "l"(db));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
#else   // a build for plain compute_90: the same sums by ordinary arithmetic
        __syncthreads();
        for (int i = 0; i < 32; ++i) {
            const int r = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + (i / 2 % 2) * 8;
            const int c = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            for (int k = 0; k < TILE; ++k) d[i] += to_float(as[place(r, k)]) * to_float(bs[place(c, k)]);
        }
#endif
        __syncthreads();
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 32; ++i) {
        const int64_t r = row0 + warp * 16 + lane / 4 + (i / 2 % 2) * 8, c = col0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < n && c < n) C[r * n + c] = from_float(d[i]);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    matmul_kernel<<<grid, 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                 static_cast<const scalar_t*>(B), n);
    check(cudaGetLastError());
}
