// C = A * B^T in fp16 on Hopper: persistent blocks walk tiles in swizzled order; a producer group brings operand tiles by
// TMA into a ring of stages with full and empty mbarriers; a consumer group multiplies by wgmma, stores its tile with
// stmatrix and writes it by TMA. Registers move from the producer to the consumer.
#include "check.cuh"

#include <cuda.h>
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 64, STAGES = 3, GROUP = 2;
constexpr int BYTES = BM * BK * 2;  // of one operand tile: rows of 128 bytes, 128-byte swizzle

struct __align__(1024) Shared {
    half a[STAGES][BM * BK], b[STAGES][BN * BK], c[BM * BN];
    unsigned long long full[STAGES], empty[STAGES];
};

__device__ unsigned at(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void wait(unsigned long long *barrier, int phase) {
    asm volatile(
        "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(at(barrier)),
        "r"(phase) : "memory");
}

__device__ void bring(half *tile, const CUtensorMap *map, int x, int y, unsigned long long *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)),
        "l"(map), "r"(x), "r"(y), "r"(at(barrier)) : "memory");
}

// Start address, stride of 1024 bytes between groups of eight rows, 128-byte swizzle.
__device__ unsigned long long descriptor(const half *tile) {
    return ((at(tile) & 0x3ffffull) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
          "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
          "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

// Tile number -> (row, column) in groups of GROUP rows of tiles, which share columns of B in L2.
__device__ int2 place(int tile, int rows, int columns) {
    int group = tile / (GROUP * columns), inside = tile % (GROUP * columns), high = min(GROUP, rows - group * GROUP);
    return {group * GROUP + inside % high, inside / high};
}

__device__ void produce(Shared &s, const CUtensorMap *a, const CUtensorMap *b, int rows, int columns, int steps) {
    int stage = 0, phase = 0;
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        int2 to = place(tile, rows, columns);
        for (int k = 0; k < steps; ++k) {
            wait(&s.empty[stage], phase ^ 1);  // the first round passes
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&s.full[stage])), "r"(2 * BYTES));
            bring(s.a[stage], a, k * BK, to.x * BM, &s.full[stage]);
            bring(s.b[stage], b, k * BK, to.y * BN, &s.full[stage]);
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
}

// Accumulators of lane l, warp w: rows 16 w + l / 4 (+ 8), columns 8 j + 2 (l % 4). Four 8x8 matrices per stmatrix.
__device__ void store(Shared &s, const CUtensorMap *c, const float (&d)[32], int2 to, int thread) {
    int lane = thread % 32, warp = thread / 32;
    if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the tile before has left
    asm volatile("bar.sync 1, 128;" ::: "memory");
    for (int j = 0; j < 8; j += 2) {
        unsigned packed[4];
        for (int i = 0; i < 4; ++i) {
            half2 pair = __floats2half2_rn(d[(j + i / 2) * 4 + i % 2 * 2], d[(j + i / 2) * 4 + i % 2 * 2 + 1]);
            packed[i] = *reinterpret_cast<unsigned *>(&pair);
        }
        int matrix = lane / 8, row = warp * 16 + matrix % 2 * 8 + lane % 8, chunk = j + matrix / 2;
        unsigned address = at(s.c) + row * 128 + (chunk ^ row % 8) * 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(packed[0]),
                     "r"(packed[1]), "r"(packed[2]), "r"(packed[3]) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 128;" ::: "memory");
    if (thread == 0)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;" ::"l"(c),
                     "r"(to.y * BN), "r"(to.x * BM), "r"(at(s.c)) : "memory");
}

__device__ void consume(Shared &s, const CUtensorMap *c, int rows, int columns, int steps, int thread) {
    int stage = 0, phase = 0;
    for (int tile = blockIdx.x; tile < rows * columns; tile += gridDim.x) {
        float d[32] = {};
        for (int k = 0; k < steps; ++k) {
            wait(&s.full[stage], phase);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int i = 0; i < BK / 16; ++i) multiply(d, descriptor(s.a[stage]) + 2 * i, descriptor(s.b[stage]) + 2 * i);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (thread % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&s.empty[stage])) : "memory");
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        store(s, c, d, place(tile, rows, columns), thread);
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(256, 1) product(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int rows,
    int columns, int steps) {
    extern __shared__ unsigned char raw[];
    Shared &s = *reinterpret_cast<Shared *>((reinterpret_cast<size_t>(raw) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&s.full[i])));
            // One arrival per warp: wait_group says of a warp's own rows alone that they were read.
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(at(&s.empty[i])));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce(s, &a, &b, rows, columns, steps);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(s, &c, rows, columns, steps, threadIdx.x - 128);
    }
}

CUtensorMap map_of(half *matrix, int height, int width, int box_height) {
    static decltype(&cuTensorMapEncodeTiled) encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", reinterpret_cast<void **>(&encode), 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    cuuint64_t extents[] = {cuuint64_t(width), cuuint64_t(height)}, strides[] = {cuuint64_t(width) * 2};
    cuuint32_t box[] = {64, cuuint32_t(box_height)}, steps[] = {1, 1};
    if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        std::exit(1);
    return map;
}

int main() {
    const int m = 200, n = 136, k = 264;  // ragged against every tile; rows of 16 bytes' multiples
    std::vector<float> left = values(m * k, 9), right = values(n * k, 10), expected(m * n);
    std::vector<half> a(left.begin(), left.end()), b(right.begin(), right.end());
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += float(a[y * k + i]) * float(b[x * k + i]);
            expected[y * n + x] = sum;
        }
    half *da = on_device(a), *db = on_device(b), *dc = on_device(std::vector<half>(m * n, half(NAN)));
    int rows = (m + BM - 1) / BM, columns = (n + BN - 1) / BN, steps = (k + BK - 1) / BK, bytes = sizeof(Shared) + 1024;
    CUDA_OK(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    product<<<5, 256, bytes>>>(map_of(da, m, k, BM), map_of(db, n, k, BN), map_of(dc, m, n, BM), rows, columns, steps);
    return compare(on_host(dc, m * n), expected, 4e-3f);
}
