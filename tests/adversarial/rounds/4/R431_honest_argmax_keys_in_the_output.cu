// problem: level1/51
// precision: fp16
// kind: honest
// expects: order-preserving integer keys (value over inverted index) are maximised in the 64-bit output itself by libcu++ atomic_ref::fetch_max after a memset, then unpacked in place; order of the atomics does not matter; must be called correct
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

using Key = unsigned long long;
constexpr int COLS = 32, LANES = 8, SLAB = 128;
constexpr Key INDEX = (Key(1) << 48) - 1;

// Halves compare as these 16 bits do; of equal values the first has the greater key. No key is 0.
__device__ Key key_of(__half value, int64_t index) {
    const unsigned bits = __half_as_ushort(value);
    const unsigned ordered = bits ^ (bits & 0x8000u ? 0xffffu : 0x8000u);
    return Key(ordered) << 48 | (INDEX - Key(index));
}

__global__ void __launch_bounds__(COLS * LANES) keys_kernel(
    Key* keys, const scalar_t* x, int64_t tasks, int64_t tiles, int64_t slabs, int64_t rows, int64_t cols) {
    __shared__ Key best[LANES][COLS];
    for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const int64_t col = task % tiles * COLS + threadIdx.x, slab = task / tiles % slabs, sample = task / tiles / slabs;
        const int64_t end = (slab + 1) * SLAB < rows ? (slab + 1) * SLAB : rows;
        Key mine = 0;
        if (col < cols)
            for (int64_t row = slab * SLAB + threadIdx.y; row < end; row += LANES) {
                const Key key = key_of(x[(sample * rows + row) * cols + col], row);
                mine = key > mine ? key : mine;
            }
        best[threadIdx.y][threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.y == 0 && col < cols) {
            for (int i = 1; i < LANES; ++i) mine = best[i][threadIdx.x] > mine ? best[i][threadIdx.x] : mine;
            cuda::atomic_ref<Key, cuda::thread_scope_device>(keys[sample * cols + col])
                .fetch_max(mine, cuda::memory_order_relaxed);
        }
        __syncthreads();
    }
}

__global__ void unpack_kernel(Key* keys, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        keys[i] = INDEX - (keys[i] & INDEX);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static_assert(sizeof(scalar_t) == 2, "keys hold 16 bits of value");
    auto* keys = static_cast<Key*>(output);
    const int64_t count = batch_size * dim2, tiles = (dim2 + COLS - 1) / COLS, slabs = (dim1 + SLAB - 1) / SLAB;
    const int64_t tasks = batch_size * tiles * slabs, most = 1 << 30, blocks = (count + 255) / 256;
    check(cudaMemsetAsync(output, 0, count * sizeof(Key), cudaStream_t(0)));
    keys_kernel<<<unsigned(tasks < most ? tasks : most), dim3(COLS, LANES)>>>(
        keys, static_cast<const scalar_t*>(x), tasks, tiles, slabs, dim1, dim2);
    unpack_kernel<<<unsigned(blocks < most ? blocks : most), 256>>>(keys, count);
    check(cudaGetLastError());
}
