// C = A * B^T in fp16 on Hopper: the two blocks of a cluster work on tiles below each other and need the same tile of B.
// Each brings its own tile of A by TMA, and one half of B's into the shared memory of both: L2 is read once for two SMs.
// A stage is refilled when the consumers of both blocks have released it, for a copy lands in both.
#include "check.cuh"

#include <cuda.h>
#include <cuda_fp16.h>

constexpr int BLOCKS = 2, BM = 64, BN = 64, BK = 64, STAGES = 3, CONSUMERS = 128;
constexpr int BYTES = BM * BK * 2;  // of one operand tile: rows of 128 bytes, 128-byte swizzle
constexpr unsigned short EVERYBODY = (1 << BLOCKS) - 1;

struct __align__(1024) Shared {
    half a[STAGES][BM * BK], b[STAGES][BN * BK];
    unsigned long long full[STAGES], empty[STAGES];
};

__device__ unsigned at(const void *shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

// `cluster`: what peers did before they arrived counts, too.
__device__ void wait(unsigned long long *barrier, int phase) {
    asm volatile(
        "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
            at(barrier)), "r"(phase) : "memory");
}

__device__ void bring(half *tile, const CUtensorMap *map, int x, int y, unsigned long long *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)),
        "l"(map), "r"(x), "r"(y), "r"(at(barrier)) : "memory");
}

// Into every block of the mask, at the same offsets of its shared memory, tile and barrier alike.
__device__ void bring_to_all(half *tile, const CUtensorMap *map, int x, int y, unsigned long long *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
            at(tile)), "l"(map), "r"(x), "r"(y), "r"(at(barrier)), "h"(EVERYBODY) : "memory");
}

__device__ void arrive_at(int rank, unsigned long long *barrier) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(at(barrier)), "r"(rank) : "memory");
}

__device__ void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
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

__device__ void produce(Shared &s, const CUtensorMap *a, const CUtensorMap *b, int row, int column, int rank, int steps) {
    for (int k = 0, stage = 0, phase = 1; k < steps; ++k) {
        wait(&s.empty[stage], phase);  // of both blocks; the first round passes
        // The whole tile of B is expected, whoever brings it; a peer's half may land before this.
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&s.full[stage])), "r"(2 * BYTES) : "memory");
        bring(s.a[stage], a, k * BK, row * BM, &s.full[stage]);
        int half_rows = BN / BLOCKS, first = rank * half_rows;
        bring_to_all(s.b[stage] + first * BK, b, k * BK, column * BN + first, &s.full[stage]);
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
}

__device__ void consume(Shared &s, half *c, int row, int column, int m, int n, int steps) {
    float d[32] = {};
    for (int k = 0, stage = 0, phase = 0; k < steps; ++k) {
        wait(&s.full[stage], phase);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int i = 0; i < BK / 16; ++i) multiply(d, descriptor(s.a[stage]) + 2 * i, descriptor(s.b[stage]) + 2 * i);
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x % 32 < BLOCKS) arrive_at(threadIdx.x % 32, &s.empty[stage]);  // of every warp, at both blocks
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
    // Accumulators of lane l, warp w: rows 16 w + l / 4 (+ 8), columns 8 j + 2 (l % 4).
    int lane = threadIdx.x % 32, y = row * BM + threadIdx.x / 32 * 16 + lane / 4, x = column * BN + lane % 4 * 2;
    for (int i = 0; i < 32; i += 2) {
        int to_y = y + i / 2 % 2 * 8, to_x = x + i / 4 * 8;
        if (to_y < m && to_x < n) *reinterpret_cast<half2 *>(&c[to_y * n + to_x]) = __floats2half2_rn(d[i], d[i + 1]);
    }
}

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(CONSUMERS + 32, 1) product(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, half *c, int m, int n, int steps) {
    extern __shared__ unsigned char raw[];
    Shared &s = *reinterpret_cast<Shared *>((reinterpret_cast<size_t>(raw) + 1023) / 1024 * 1024);
    int row = blockIdx.x, column = blockIdx.y, rank = blockIdx.x % BLOCKS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&s.full[i])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&s.empty[i])), "r"(BLOCKS * CONSUMERS / 32));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    meet();  // nobody writes into a block whose barriers are not there yet
    if (threadIdx.x < CONSUMERS) consume(s, c, row, column, m, n, steps);
    else if (threadIdx.x == CONSUMERS) produce(s, &a, &b, row, column, rank, steps);
    __syncwarp();
    meet();  // nobody leaves while a peer may still arrive at its barriers
}

CUtensorMap map_of(half *matrix, int height, int width, int box_height) {
    static decltype(&cuTensorMapEncodeTiled) encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", reinterpret_cast<void **>(&encode), 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    cuuint64_t extents[] = {cuuint64_t(width), cuuint64_t(height)}, strides[] = {cuuint64_t(width) * 2};
    cuuint32_t box[] = {BK, cuuint32_t(box_height)}, steps[] = {1, 1};
    if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        std::exit(1);
    return map;
}

int main() {
    const int m = 150, n = 136, k = 520;  // ragged against every tile, and a cluster whose second block has no row
    std::vector<float> left = values(m * k, 11), right = values(n * k, 12), expected(m * n);
    std::vector<half> a(left.begin(), left.end()), b(right.begin(), right.end());
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += float(a[y * k + i]) * float(b[x * k + i]);
            expected[y * n + x] = sum;
        }
    half *da = on_device(a), *db = on_device(b), *dc = on_device(std::vector<half>(m * n, half(NAN)));
    int clusters = (m + BLOCKS * BM - 1) / (BLOCKS * BM), bytes = sizeof(Shared) + 1024;
    dim3 grid(BLOCKS * clusters, (n + BN - 1) / BN);
    CUDA_OK(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    product<<<grid, CONSUMERS + 32, bytes>>>(map_of(da, m, k, BM), map_of(db, n, k, BN / BLOCKS), dc, m, n, (k + BK - 1) / BK);
    return compare(on_host(dc, m * n), expected, 4e-3f);
}
