// problem: level1/89
// precision: bf16
// kind: honest
// expects: cub::BlockLoad / BlockScan / BlockStore with a running prefix callback, one block per row; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, ITEMS = 8;

struct Running {
    float total;
    __device__ float operator()(float tile) {
        const float before = total;
        total += tile;
        return before;
    }
};

__global__ void __launch_bounds__(THREADS) cumsum_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    using Load = cub::BlockLoad<scalar_t, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<float, THREADS, cub::BLOCK_SCAN_WARP_SCANS>;
    using Store = cub::BlockStore<scalar_t, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union { typename Load::TempStorage load; typename Scan::TempStorage scan; typename Store::TempStorage store; } shared;
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    Running running{0.0f};
    for (int64_t begin = 0; begin < dim; begin += THREADS * ITEMS) {
        const int valid = static_cast<int>(dim - begin < THREADS * ITEMS ? dim - begin : THREADS * ITEMS);
        scalar_t raw[ITEMS];
        float v[ITEMS];
        Load(shared.load).Load(row + begin, raw, valid, from_float(0.0f));
        for (int i = 0; i < ITEMS; ++i) v[i] = to_float(raw[i]);
        __syncthreads();
        Scan(shared.scan).InclusiveSum(v, v, running);
        __syncthreads();
        for (int i = 0; i < ITEMS; ++i) raw[i] = from_float(v[i]);
        Store(shared.store).Store(out + begin, raw, valid);
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    cumsum_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
