// Blocks of clusters: clusters CASE. Exits with 0 when the values are right, 1 when not, 2 when CUDA reports an error.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;
using u32 = unsigned;

constexpr int kBlocks = 24, kCluster = 4, kThreads = 64;

__device__ u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }
__device__ u32 mapped(u32 address, u32 rank) {
    u32 result;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
    return result;
}
__device__ u32 rank_in_cluster() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ void arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ void wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// Every block gathers what the others have, through generic pointers.
__global__ void __cluster_dims__(kCluster, 1, 1) gather(int* y) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = blockIdx.x + 1;
    cluster.sync();
    int sum = 0;
    for (int rank = 0; rank < kCluster; ++rank) {
        int* theirs = cluster.map_shared_rank(&mine, rank);
        sum += cluster.query_shared_rank(theirs) == rank ? *theirs : 1 << 20;
    }
    cluster.sync();
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// The same by pushing, and between arrival and wait something else is done.
__global__ void __cluster_dims__(kCluster, 1, 1) push(int* y) {
    __shared__ alignas(8) int received[2 * kCluster];
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    arrive();
    const int value = blockIdx.x + 1;
    wait();
    if (threadIdx.x < kCluster) {
        const u32 to = mapped(shared_address(&received[2 * rank_in_cluster()]), threadIdx.x);
        asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(value), "r"(0) : "memory");
        const u32 sum = mapped(shared_address(&total), threadIdx.x);
        asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(sum), "r"(value) : "memory");
    }
    arrive();
    wait();
    int sum = 0;
    for (int rank = 0; rank < kCluster; ++rank) sum += received[2 * rank] + received[2 * rank + 1];
    if (threadIdx.x == 0) y[blockIdx.x] = sum == total ? sum : -1;
}

// Each block waits at a barrier of its own, at which one thread of each block arrives after it has written.
__global__ void __cluster_dims__(kCluster, 1, 1) signal(int* y) {
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ int received[kCluster];
    const u32 own = shared_address(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(own), "r"(kCluster) : "memory");
    arrive();
    wait();
    if (threadIdx.x < kCluster) {
        const u32 to = mapped(shared_address(&received[rank_in_cluster()]), threadIdx.x);
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(blockIdx.x + 1) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapped(own, threadIdx.x)) : "memory");
    }
    u32 done = 0;
    while (done == 0)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(own) : "memory");
    int sum = 0;
    for (int rank = 0; rank < kCluster; ++rank) sum += received[rank];
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
    arrive();  // nobody leaves while others write
    wait();
}

// Rank 0 copies the values of all blocks to each of them.
__global__ void __cluster_dims__(kCluster, 1, 1) bulk(int* y, const int* values) {
    __shared__ alignas(16) int received[kCluster];
    __shared__ alignas(8) unsigned long long barrier;
    const u32 own = shared_address(&barrier), bytes = sizeof received;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(own) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(own), "r"(bytes) : "memory");
    }
    arrive();
    wait();
    if (rank_in_cluster() == 0 && threadIdx.x < kCluster)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         mapped(shared_address(received), threadIdx.x)), "l"(values + blockIdx.x), "r"(bytes),
                     "r"(mapped(own, threadIdx.x)) : "memory");
    u32 done = 0;
    while (done == 0)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(own) : "memory");
    if (threadIdx.x == 0) y[blockIdx.x] = received[0] + received[1] + received[2] + received[3];
    arrive();
    wait();
}

// Some threads, and whole blocks, leave early: the barrier waits for those that are left.
__global__ void __cluster_dims__(kCluster, 1, 1) leave(int* y) {
    if (threadIdx.x % 2 == 1 || rank_in_cluster() == 3) return;
    arrive();
    wait();
    if (threadIdx.x == 0) y[blockIdx.x] = 1;
}

// A grid of three axes in clusters of two: places within the cluster and of the cluster.
__global__ void __cluster_dims__(2, 3, 1) places(int* wrong) {
    cg::cluster_group cluster = cg::this_cluster();
    const dim3 inside = cluster.block_index(), extent = cluster.dim_blocks();
    uint3 at, count;
    asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%clusterid.y; mov.u32 %2, %%clusterid.z;" : "=r"(at.x), "=r"(at.y), "=r"(at.z));
    asm("mov.u32 %0, %%nclusterid.x; mov.u32 %1, %%nclusterid.y; mov.u32 %2, %%nclusterid.z;"
        : "=r"(count.x), "=r"(count.y), "=r"(count.z));
    bool good = extent.x == 2 && extent.y == 3 && extent.z == 1 && cluster.num_blocks() == 6;
    good &= count.x == gridDim.x / 2 && count.y == gridDim.y / 3 && count.z == gridDim.z;
    good &= at.x == blockIdx.x / 2 && at.y == blockIdx.y / 3 && at.z == blockIdx.z;
    good &= inside.x == blockIdx.x % 2 && inside.y == blockIdx.y % 3 && inside.z == 0;
    good &= cluster.block_rank() == inside.x + 2 * inside.y;
    if (!good) atomicAdd(wrong, 1);
}

__global__ void reaches_too_far(int* y) {
    __shared__ int mine;
    mine = 1;
    arrive();
    wait();
    y[blockIdx.x] = *cg::this_cluster().map_shared_rank(&mine, kCluster);  // RANK
    arrive();
    wait();
}

__global__ void reads_who_is_gone(int* y) {
    __shared__ int mine;
    mine = 1;
    arrive();
    wait();
    if (rank_in_cluster() == 0) return;
    for (int k = 0; k < 1000; ++k) __nanosleep(100);
    y[blockIdx.x] = *cg::this_cluster().map_shared_rank(&mine, 0);  // GONE
}

__global__ void never_arrives(int* y) {
    wait();  // DEADLOCK
    y[blockIdx.x] = 1;
}

__global__ void plain(int* y) { y[blockIdx.x] = 1; }

cudaError_t launch(void (*kernel)(int*), int* y, u32 cluster, u32 blocks = kBlocks) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = blocks;
    configuration.blockDim = kThreads;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    const cudaError_t error = cudaLaunchKernelEx(&configuration, kernel, y);
    return cudaGetLastError() == error ? error : cudaErrorUnknown;
}

bool sizes(int* y) {
    bool good = launch(plain, y, 3) == cudaSuccess && launch(plain, y, 1) == cudaSuccess;
    good &= launch(plain, y, 5) == cudaErrorInvalidClusterSize;       // the grid is no multiple
    good &= launch(gather, y, 2) == cudaErrorInvalidClusterSize;      // the kernel says otherwise
    good &= launch(plain, y, 16, 32) == cudaErrorInvalidClusterSize;  // nobody has asked for more than eight
    int most = 0, active = 0;
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = kBlocks;
    configuration.blockDim = 1024;
    good &= cudaOccupancyMaxPotentialClusterSize(&most, plain, &configuration) == cudaSuccess && most == 8;
    cudaFuncSetAttribute(plain, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    good &= launch(plain, y, 16, 32) == cudaSuccess;
    good &= cudaOccupancyMaxActiveClusters(&active, gather, &configuration) == cudaSuccess && active == 132 / 4 * 2;
    int clusters = 0;
    cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0);
    return good && clusters == 1;
}

int main(int, char** arguments) {
    const char* name = arguments[1];
    const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
    int *y = nullptr, *values = nullptr;
    cudaMalloc(&y, kBlocks * 2 * sizeof(int));
    cudaMalloc(&values, kBlocks * sizeof(int));
    cudaMemset(y, 0, kBlocks * 2 * sizeof(int));
    std::vector<int> numbers(kBlocks), wanted(kBlocks), found(kBlocks);
    for (int b = 0; b < kBlocks; ++b) numbers[b] = b + 1;
    cudaMemcpy(values, numbers.data(), kBlocks * sizeof(int), cudaMemcpyHostToDevice);
    for (int b = 0; b < kBlocks; ++b)
        for (int k = 0; k < kCluster; ++k) wanted[b] += numbers[b / kCluster * kCluster + k];
    if (is("sizes")) return sizes(y) ? 0 : 1;
    if (is("gather")) gather<<<kBlocks, kThreads>>>(y);
    if (is("push")) push<<<kBlocks, kThreads>>>(y);
    if (is("signal")) signal<<<kBlocks, kThreads>>>(y);
    if (is("bulk")) bulk<<<kBlocks, kThreads>>>(y, values);
    if (is("leave")) {
        leave<<<kBlocks, kThreads>>>(y);
        for (int b = 0; b < kBlocks; ++b) wanted[b] = b % kCluster != 3;
    }
    if (is("places")) {
        places<<<dim3(4, 6, 2), kThreads>>>(y);
        wanted.assign(kBlocks, 0);
    }
    if (is("rank")) launch(reaches_too_far, y, kCluster);
    if (is("gone")) launch(reads_who_is_gone, y, kCluster);
    if (is("deadlock")) launch(never_arrives, y, kCluster);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", name, cudaGetErrorName(error));
        return 2;
    }
    cudaMemcpy(found.data(), y, kBlocks * sizeof(int), cudaMemcpyDeviceToHost);
    return found == wanted ? 0 : 1;
}
