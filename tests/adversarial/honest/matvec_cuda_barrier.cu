// problem: level1/4
// does: cuda::barrier and cuda::memcpy_async stage the vector in two buffers
// emulated: correct
// cuda: correct
// size: medium
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <kernelblaster/scalar.cuh>

#include <utility>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int CHUNK = 2048, THREADS = 256;

__global__ void matvec(float* partial, const scalar_t* A, const scalar_t* v, int64_t k, int64_t per_block) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier ready[2];
    __shared__ alignas(16) scalar_t chunk[2][CHUNK];
    __shared__ float sums[THREADS / 32];
    const auto block = cg::this_thread_block();
    if (block.thread_rank() < 2) init(&ready[block.thread_rank()], block.size());
    block.sync();
    const int64_t begin = blockIdx.x * per_block, end = min(begin + per_block, k);
    const scalar_t* row = A + blockIdx.y * k;

    const auto fetch = [&](int64_t at, int stage) {
        const int64_t items = min(int64_t(CHUNK), end - at);
        if (items > 0) cuda::memcpy_async(block, chunk[stage], v + at, sizeof(scalar_t) * items, ready[stage]);
    };
    float sum = 0.0f;
    fetch(begin, 0);
    int stage = 0;
    for (int64_t at = begin; at < end; at += CHUNK, stage ^= 1) {
        fetch(at + CHUNK, stage ^ 1);
        ready[stage].arrive_and_wait();
        for (int i = threadIdx.x; i < CHUNK && at + i < end; i += THREADS)
            sum = fmaf(to_float(row[at + i]), to_float(chunk[stage][i]), sum);
        block.sync();
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    block.sync();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; ++i) sum += sums[i];
        partial[blockIdx.y * gridDim.x + blockIdx.x] = sum;
    }
}

__global__ void add_up(scalar_t* y, const float* partial, int64_t rows, int parts) {
    const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = 0; i < parts; ++i) sum += partial[row * parts + i];
    y[row] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    static float* partial = nullptr;
    static int64_t held = 0;
    const int64_t chunks = (k + CHUNK - 1) / CHUNK, parts = chunks < 8 ? chunks : 8;
    const int64_t per_block = (chunks + parts - 1) / parts * CHUNK;
    if (m * parts > held) {
        cudaFree(partial);
        cudaMalloc(&partial, m * parts * sizeof(float));
        held = m * parts;
    }
    const dim3 grid{unsigned(parts), unsigned(m)};
    matvec<<<grid, THREADS>>>(partial, static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), k, per_block);
    add_up<<<unsigned((m + 127) / 128), 128>>>(static_cast<scalar_t*>(output), partial, m, int(parts));
}
