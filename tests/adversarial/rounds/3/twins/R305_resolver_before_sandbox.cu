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
#include <mma.h>

// 128 x 128 outputs per block by tensor cores, fp32 sums; 8 warps of 64 x 32. Tiles of A and B by asynchronous copies.
constexpr int BM = 128, BN = 128, BK = 32, LDA = BK + 8, LDB = BN + 8;
constexpr size_t SHARED = 2 * (BM * LDA + BK * LDB) * sizeof(scalar_t);

__device__ void copy16(scalar_t* to, const scalar_t* from, bool inside) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0));
}

__global__ void __launch_bounds__(256) matmul_tiles(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    using namespace nvcuda::wmma;
    extern __shared__ __align__(128) unsigned char memory[];
    auto* as = reinterpret_cast<scalar_t*>(memory);
    auto* bs = as + 2 * BM * LDA;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * BM, col0 = static_cast<int64_t>(blockIdx.x) * BN;
    const int t = threadIdx.x, warp = t / 32, lane = t % 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
    const auto load = [&](int stage, int64_t k0) {
        for (int i = t; i < BM * BK / 8; i += 256) {
            const int r = i / (BK / 8), c = i % (BK / 8) * 8;
            const bool in = row0 + r < n && k0 + c < n;
            copy16(as + (stage * BM + r) * LDA + c, in ? A + (row0 + r) * n + k0 + c : A, in);
        }
        for (int i = t; i < BK * BN / 8; i += 256) {
            const int r = i / (BN / 8), c = i % (BN / 8) * 8;
            const bool in = k0 + r < n && col0 + c < n;
            copy16(bs + (stage * BK + r) * LDB + c, in ? B + (k0 + r) * n + col0 + c : B, in);
        }
        asm volatile("cp.async.commit_group;");
    };
    fragment<accumulator, 16, 16, 16, float> acc[4][2];
    for (auto& line : acc) {
        for (auto& one : line) fill_fragment(one, 0.0f);
    }
    load(0, 0);
    int stage = 0;
    for (int64_t k0 = 0; k0 < n; k0 += BK, stage ^= 1) {
        if (k0 + BK < n) {
            load(stage ^ 1, k0 + BK);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            fragment<matrix_a, 16, 16, 16, scalar_t, row_major> a[4];
            fragment<matrix_b, 16, 16, 16, scalar_t, row_major> b[2];
            for (int i = 0; i < 4; ++i) load_matrix_sync(a[i], as + (stage * BM + wm + i * 16) * LDA + k, LDA);
            for (int j = 0; j < 2; ++j) load_matrix_sync(b[j], bs + (stage * BK + k) * LDB + wn + j * 16, LDB);
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 2; ++j) mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
            }
        }
        __syncthreads();
    }
    float* own = reinterpret_cast<float*>(memory) + warp * 256;
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 2; ++j) {
            store_matrix_sync(own, acc[i][j], 16, mem_row_major);
            __syncwarp();
            for (int e = lane; e < 256; e += 32) {
                const int64_t r = row0 + wm + i * 16 + e / 16, c = col0 + wn + j * 16 + e % 16;
                if (r < n && c < n) C[r * n + c] = from_float(own[e]);
            }
            __syncwarp();
        }
    }
}

__global__ void matmul_plain(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n) {
    __shared__ float a_tile[16][16], b_tile[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * 16 + ty, col = static_cast<int64_t>(blockIdx.x) * 16 + tx;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += 16) {
        a_tile[ty][tx] = row < n && k0 + tx < n ? to_float(A[row * n + k0 + tx]) : 0.0f;
        b_tile[ty][tx] = k0 + ty < n && col < n ? to_float(B[(k0 + ty) * n + col]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = from_float(sum);
}

static void run(cudaStream_t stream, void* output, void* A, void* B, int64_t n) {
    auto* c = static_cast<scalar_t*>(output);
    const auto *a = static_cast<const scalar_t*>(A), *b = static_cast<const scalar_t*>(B);
    if (n % 8 == 0) {
        const int64_t tiles = (n + BM - 1) / BM;
        matmul_tiles<<<dim3(tiles, tiles), 256, SHARED, stream>>>(c, a, b, n);
    } else {
        const int64_t tiles = (n + 15) / 16;
        matmul_plain<<<dim3(tiles, tiles), dim3(16, 16), 0, stream>>>(c, a, b, n);
    }
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    run(0, output, A, B, n);
}
