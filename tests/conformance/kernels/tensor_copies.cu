// Bulk copies of the tensor memory accelerator: how many stages are under way, how large they are, where from, to how many
// blocks, and back. Consumers add up whole numbers, so that no order of them shows.
#include "tensor_maps.hpp"

using namespace conformance;

constexpr int kThreads = 128, kBlocks = 132;
constexpr int kRows = 8192, kColumns = 1024;  // 32 MiB of words

// Each block sums the tiles k, k + gridDim.x, ... of a matrix, `rounds` times; thread 0 asks for a tile as soon as its place
// is free. `Cluster`: so many blocks get every tile, of which each asks for a part of the rows.
template <int Rows, int Columns, int Stages, int Cluster = 1>
__global__ void __launch_bounds__(kThreads) sum_tiles(const __grid_constant__ CUtensorMap map, unsigned* sums, int across, int tiles, int rounds) {
    extern __shared__ __align__(1024) unsigned pool[];
    __shared__ uint64_t full[Stages];
    constexpr int kWords = Rows * Columns;
    if (threadIdx.x == 0) {
        for (int s = 0; s < Stages; ++s) barrier_init(&full[s], 1);
        barriers_are_ready();
    }
    __syncthreads();
    unsigned rank = 0;
    if constexpr (Cluster > 1) {
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    }
    const int first = blockIdx.x / Cluster, step = gridDim.x / Cluster, mine = (tiles - first + step - 1) / step * rounds;
    const int once = (tiles - first + step - 1) / step;
    const auto fetch = [&](int k) {
        const int tile = first + k % once * step, stage = k % Stages;
        barrier_expect(&full[stage], kWords * 4);
        if constexpr (Cluster == 1) {
            load_tile(pool + stage * kWords, &map, tile % across * Columns, tile / across * Rows, &full[stage]);
        } else {
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], "
                "[%4], %5;" ::"r"(shared_at(pool + stage * kWords + rank * (kWords / Cluster))),
                "l"(&map), "r"(tile % across * Columns), "r"(tile / across * Rows + static_cast<int>(rank) * (Rows / Cluster)),
                "r"(shared_at(&full[stage])), "h"(static_cast<unsigned short>((1 << Cluster) - 1))
                : "memory");
        }
    };
    if (threadIdx.x == 0)
        for (int k = 0; k < Stages && k < mine; ++k) fetch(k);
    unsigned sum = 0;
    for (int k = 0; k < mine; ++k) {
        const int stage = k % Stages;
        barrier_wait(&full[stage], k / Stages & 1);
        for (int i = threadIdx.x; i < kWords / 4; i += kThreads) {
            const uint4 part = reinterpret_cast<const uint4*>(pool + stage * kWords)[i];
            sum += part.x + part.y + part.z + part.w;
        }
        __syncthreads();
        // No block may ask for a tile before all have read what its place holds.
        if constexpr (Cluster > 1) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
        if (threadIdx.x == 0 && k + Stages < mine) fetch(k + Stages);
    }
    sums[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// The same with copies of contiguous bytes, which need no map.
template <int Bytes, int Stages>
__global__ void __launch_bounds__(kThreads) sum_bytes(const unsigned* x, unsigned* sums, int pieces) {
    extern __shared__ __align__(1024) unsigned pool[];
    __shared__ uint64_t full[Stages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < Stages; ++s) barrier_init(&full[s], 1);
        barriers_are_ready();
    }
    __syncthreads();
    const auto fetch = [&](int k) {
        const int stage = k % Stages;
        barrier_expect(&full[stage], Bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_at(pool + stage * (Bytes / 4))),
                     "l"(x + (blockIdx.x + static_cast<size_t>(k) * gridDim.x) * (Bytes / 4)), "r"(Bytes), "r"(shared_at(&full[stage]))
                     : "memory");
    };
    const int mine = (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x;
    if (threadIdx.x == 0)
        for (int k = 0; k < Stages && k < mine; ++k) fetch(k);
    unsigned sum = 0;
    for (int k = 0; k < mine; ++k) {
        barrier_wait(&full[k % Stages], k / Stages & 1);
        for (int i = threadIdx.x; i < Bytes / 4; i += kThreads) sum += pool[k % Stages * (Bytes / 4) + i];
        __syncthreads();
        if (threadIdx.x == 0 && k + Stages < mine) fetch(k + Stages);
    }
    sums[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// Tiles through shared memory to another matrix: loads, adds one, stores. `Back` is where they go: 0 nowhere from memory
// (only stores), 1 a copy, 2 a sum into few tiles.
template <int Rows, int Columns, int Stages, int Back>
__global__ void __launch_bounds__(kThreads) move_tiles(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int across, int tiles, int targets) {
    extern __shared__ __align__(1024) unsigned pool[];
    __shared__ uint64_t full[Stages];
    constexpr int kWords = Rows * Columns;
    if (threadIdx.x == 0) {
        for (int s = 0; s < Stages; ++s) barrier_init(&full[s], 1);
        barriers_are_ready();
    }
    __syncthreads();
    const int mine = (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
    const auto fetch = [&](int k) {
        const int tile = blockIdx.x + k * gridDim.x;
        barrier_expect(&full[k % Stages], kWords * 4);
        load_tile(pool + k % Stages * kWords, &from, tile % across * Columns, tile / across * Rows, &full[k % Stages]);
    };
    if (Back != 0 && threadIdx.x == 0)
        for (int k = 0; k < Stages - 1 && k < mine; ++k) fetch(k);
    for (int k = 0; k < mine; ++k) {
        unsigned* const place = pool + k % Stages * kWords;
        if (Back != 0) barrier_wait(&full[k % Stages], k / Stages & 1);
        for (int i = threadIdx.x; i < kWords; i += kThreads) place[i] = Back != 0 ? place[i] + 1 : i + k;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            const int tile = (blockIdx.x + k * gridDim.x) % targets;
            if (Back == 2)
                asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
                             "r"(tile % across * Columns), "r"(tile / across * Rows), "r"(shared_at(place))
                             : "memory");
            else
                asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
                             "r"(tile % across * Columns), "r"(tile / across * Rows), "r"(shared_at(place))
                             : "memory");
            asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;" ::: "memory");
            if (Back != 0 && k + Stages - 1 < mine) fetch(k + Stages - 1);
        }
        if (Back == 0) __syncthreads();
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Sums of crosses over 16 planes, one after the other: boxes that overlap and reach beyond the edges, where zeros are read.
// They begin at multiples of 16 bytes.
__global__ void __launch_bounds__(kThreads) sum_halos(const __grid_constant__ CUtensorMap map, unsigned* sums, int planes) {
    __shared__ __align__(1024) unsigned pool[2][736];  // 18 x 40 words, and what aligns them
    __shared__ uint64_t full[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) barrier_init(&full[s], 1);
        barriers_are_ready();
    }
    __syncthreads();
    const auto fetch = [&](int k) {
        barrier_expect(&full[k % 2], 18 * 40 * 4);
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_at(pool[k % 2])),
                     "l"(&map), "r"(static_cast<int>(blockIdx.x) * 32 - 4), "r"(static_cast<int>(blockIdx.y) * 16 - 1), "r"(k), "r"(shared_at(&full[k % 2]))
                     : "memory");
    };
    if (threadIdx.x == 0) fetch(0);
    unsigned sum[4] = {};
    for (int k = 0; k < planes; ++k) {
        if (threadIdx.x == 0 && k + 1 < planes) fetch(k + 1);
        barrier_wait(&full[k % 2], k / 2 & 1);
        for (int j = 0; j < 4; ++j) {
            const int x = threadIdx.x % 32, y = threadIdx.x / 32 * 4 + j;
            const unsigned* const at = pool[k % 2] + y * 40 + x;
            sum[j] += at[4] + at[43] + at[44] + at[45] + at[84];
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        sums[(blockIdx.y * 16 + threadIdx.x / 32 * 4 + j) * gridDim.x * 32 + blockIdx.x * 32 + threadIdx.x % 32] = sum[j];
}

Tiling words_of(size_t rows, size_t columns, unsigned box_rows, unsigned box_columns) {
    return {CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, rows, columns, box_rows, box_columns};
}

template <int Rows, int Columns, int Stages, int Cluster = 1>
void sum_case(Run& run, int rows = kRows, int rounds = 1, CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
    const auto x = run.integers<unsigned>(static_cast<size_t>(rows) * kColumns, 14, 1000);
    const auto sums = run.empty<unsigned>(kBlocks * kThreads);
    Tiling tiling = words_of(rows, kColumns, Rows / Cluster, Columns);
    tiling.swizzle = swizzle;
    const CUtensorMap map = tensor_map(x, tiling);
    const auto kernel = sum_tiles<Rows, Columns, Stages, Cluster>;
    const unsigned bytes = Stages * Rows * Columns * 4;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "asking for shared memory");
    run.call([=] {
        cudaLaunchConfig_t configuration{};
        configuration.gridDim = kBlocks, configuration.blockDim = kThreads, configuration.dynamicSmemBytes = bytes;
        cudaLaunchAttribute cluster{};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {Cluster, 1, 1};
        configuration.attrs = &cluster, configuration.numAttrs = Cluster > 1;
        const int across = kColumns / Columns, tiles = rows / Rows * across;
        check(cudaLaunchKernelEx(&configuration, kernel, map, sums, across, tiles, rounds), "launching");
    });
    run.output("sums", sums, kBlocks * kThreads);
}

template <int Bytes, int Stages>
void bytes_case(Run& run) {
    const auto x = run.integers<unsigned>(kRows * kColumns, 15, 1000);
    const auto sums = run.empty<unsigned>(kBlocks * kThreads);
    const auto kernel = sum_bytes<Bytes, Stages>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Bytes * Stages), "asking for shared memory");
    run.call([=] { kernel<<<kBlocks, kThreads, Bytes * Stages>>>(x, sums, kRows * kColumns / (Bytes / 4)); });
    run.output("sums", sums, kBlocks * kThreads);
}

template <int Stages, int Back>
void move_case(Run& run, int targets) {
    constexpr int kBox = 32, kMovedRows = 4096;
    const size_t words = static_cast<size_t>(kMovedRows) * kColumns;
    const auto x = run.integers<unsigned>(words, 16, 1000);
    const auto y = run.empty<unsigned>(words);
    const CUtensorMap from = tensor_map(x, words_of(kMovedRows, kColumns, kBox, kBox)), to = tensor_map(y, words_of(kMovedRows, kColumns, kBox, kBox));
    const auto kernel = move_tiles<kBox, kBox, Stages, Back>;
    const unsigned bytes = Stages * kBox * kBox * 4;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "asking for shared memory");
    run.before([=] { cudaMemsetAsync(y, 0, words * 4); });
    run.call([=] { kernel<<<kBlocks, kThreads, bytes>>>(from, to, kColumns / kBox, kMovedRows / kBox * (kColumns / kBox), targets); });
    run.output("y", y, words);
}

CASE(tma_tile_8k_1_stage) { sum_case<32, 64, 1>(run); }
CASE(tma_tile_8k_2_stages) { sum_case<32, 64, 2>(run); }
CASE(tma_tile_8k_4_stages) { sum_case<32, 64, 4>(run); }
CASE(tma_tile_8k_8_stages) { sum_case<32, 64, 8>(run); }
CASE(tma_tile_2k_4_stages) { sum_case<16, 32, 4>(run); }
CASE(tma_tile_32k_4_stages) { sum_case<128, 64, 4>(run); }
CASE(tma_tile_32k_6_stages) { sum_case<128, 64, 6>(run); }
CASE(tma_swizzled_4_stages) { sum_case<64, 32, 4>(run, kRows, 1, CU_TENSOR_MAP_SWIZZLE_128B); }
CASE(tma_from_l2_1_stage) { sum_case<32, 64, 1>(run, 1056, 8); }
CASE(tma_from_l2_4_stages) { sum_case<32, 64, 4>(run, 1056, 8); }
CASE(tma_multicast_2) { sum_case<32, 64, 4, 2>(run); }
CASE(tma_multicast_4) { sum_case<32, 64, 4, 4>(run); }
CASE(tma_bytes_8k_4_stages) { bytes_case<8192, 4>(run); }
CASE(tma_bytes_1k_8_stages) { bytes_case<1024, 8>(run); }
CASE(tma_stores) { move_case<2, 0>(run, 4096); }
CASE(tma_copies) { move_case<4, 1>(run, 4096); }
CASE(tma_sums_into_16_tiles) { move_case<4, 2>(run, 16); }
CASE(tma_halos) {
    const int width = 512, height = 256, planes = 16;
    const auto x = run.integers<unsigned>(static_cast<size_t>(width) * height * planes, 17, 1000);
    const auto sums = run.empty<unsigned>(width * height);
    Tiling tiling = words_of(height, width, 18, 40);
    tiling.planes = planes;
    const CUtensorMap map = tensor_map(x, tiling);
    run.call([=] { sum_halos<<<dim3(width / 32, height / 16), kThreads>>>(map, sums, planes); });
    run.output("sums", sums, width * height);
}

CONFORMANCE_MAIN
