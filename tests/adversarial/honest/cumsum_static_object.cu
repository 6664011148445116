// problem: level1/89
// does: a static object whose constructor takes a workspace and whose destructor gives it back
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>

constexpr int CHUNK = 1024, THREADS = 128;

namespace {

// Sums of chunks, for all rows.
struct ChunkSums {
    ChunkSums() { std::fflush(stderr); }
    ~ChunkSums() {
        // The driver may be shutting down; what it says then does not matter.
        if (data != nullptr) static_cast<void>(cudaFree(data));
    }
    ChunkSums(const ChunkSums&) = delete;
    ChunkSums& operator=(const ChunkSums&) = delete;

    float* reserve(int64_t count) {
        if (count > capacity) {
            cudaFree(data);
            data = nullptr;
            cudaMalloc(reinterpret_cast<void**>(&data), size_t(count) * sizeof(float));
            capacity = count;
        }
        return data;
    }

    float* data = nullptr;
    int64_t capacity = 0;
};

ChunkSums chunk_sums;  // before main

}  // namespace

__global__ void sum_chunks(float* sums, const scalar_t* x, int64_t dim, int64_t chunks) {
    __shared__ float part[THREADS / 32];
    const int64_t begin = int64_t(blockIdx.x) * CHUNK;
    const int64_t end = min(begin + CHUNK, dim);
    float sum = 0.0f;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) sum += to_float(x[blockIdx.y * dim + i]);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.y * chunks + blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}

__global__ void scan_chunks(scalar_t* y, const float* sums, const scalar_t* x, int64_t dim, int64_t chunks) {
    __shared__ float last[THREADS];
    constexpr int EACH = CHUNK / THREADS;
    const int64_t first = int64_t(blockIdx.x) * CHUNK + threadIdx.x * EACH;
    float before = 0.0f;
    for (int64_t c = 0; c < blockIdx.x; ++c) before += sums[blockIdx.y * chunks + c];
    float run[EACH], sum = 0.0f;
    for (int i = 0; i < EACH; ++i) {
        if (first + i < dim) sum += to_float(x[blockIdx.y * dim + first + i]);
        run[i] = sum;
    }
    last[threadIdx.x] = sum;
    __syncthreads();
    for (int o = 1; o < THREADS; o *= 2) {
        const float other = threadIdx.x >= o ? last[threadIdx.x - o] : 0.0f;
        __syncthreads();
        last[threadIdx.x] += other;
        __syncthreads();
    }
    if (threadIdx.x > 0) before += last[threadIdx.x - 1];
    for (int i = 0; i < EACH; ++i) {
        if (first + i < dim) y[blockIdx.y * dim + first + i] = from_float(before + run[i]);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t chunks = (dim + CHUNK - 1) / CHUNK;
    float* sums = chunk_sums.reserve(chunks * batch_size);
    const dim3 grid{unsigned(chunks), unsigned(batch_size)};
    sum_chunks<<<grid, THREADS>>>(sums, static_cast<const scalar_t*>(x), dim, chunks);
    scan_chunks<<<grid, THREADS>>>(static_cast<scalar_t*>(output), sums, static_cast<const scalar_t*>(x), dim, chunks);
}
