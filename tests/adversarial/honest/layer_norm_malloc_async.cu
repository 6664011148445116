// problem: level1/40
// does: takes its workspace from the stream-ordered allocator at each call and gives it back
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>

#define CHECK(expression)                                                                                      \
    if (const cudaError_t status = (expression); status != cudaSuccess) {                                      \
        std::fprintf(stderr, "%s failed: %s\n", #expression, cudaGetErrorString(status));                      \
        return;                                                                                                \
    }

constexpr int SLICES = 32, THREADS = 256;

__device__ float block_sum(float v, float* scratch) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) v += scratch[i];
    return v;
}

// Mean and sum of squared distances of a slice of a sample.
__global__ void slices(float2* parts, const scalar_t* x, int64_t count) {
    __shared__ float scratch[THREADS / 32];
    const int64_t each = (count + SLICES - 1) / SLICES, begin = min(blockIdx.x * each, count);
    const int64_t end = min(begin + each, count);
    const scalar_t* sample = x + blockIdx.y * count;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) sum += to_float(sample[i]);
    const float mean = end > begin ? block_sum(sum, scratch) / float(end - begin) : block_sum(sum, scratch);
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const float d = to_float(sample[i]) - mean;
        squares += d * d;
    }
    squares = block_sum(squares, scratch);
    if (threadIdx.x == 0) parts[blockIdx.y * SLICES + blockIdx.x] = make_float2(mean, squares);
}

__global__ void normalise(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, const float2* parts,
                          int64_t count, float eps) {
    __shared__ float shared_mean, shared_scale;
    if (threadIdx.x == 0) {
        const int64_t each = (count + SLICES - 1) / SLICES;
        float n = 0.0f, mean = 0.0f, squares = 0.0f;
        for (int s = 0; s < SLICES; ++s) {
            const int64_t begin = min(s * each, count);
            const float m = float(min(begin + each, count) - begin);
            if (m == 0.0f) break;
            const float2 part = parts[blockIdx.y * SLICES + s];
            const float delta = part.x - mean, total = n + m;
            mean += delta * (m / total);
            squares += part.y + delta * delta * (n * (m / total));
            n = total;
        }
        shared_mean = mean;
        shared_scale = rsqrtf(squares / float(count) + eps);
    }
    __syncthreads();
    const float mean = shared_mean, scale = shared_scale;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < count; i += int64_t(gridDim.x) * THREADS) {
        const float v = (to_float(x[blockIdx.y * count + i]) - mean) * scale;
        y[blockIdx.y * count + i] = from_float(v * to_float(w[i]) + to_float(b[i]));
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2;
    const cudaStream_t stream = cudaStreamLegacy;
    float2* parts = nullptr;
    CHECK(cudaMallocAsync(reinterpret_cast<void**>(&parts), batch_size * SLICES * sizeof(float2), stream));
    slices<<<dim3(SLICES, unsigned(batch_size)), THREADS, 0, stream>>>(parts, static_cast<const scalar_t*>(x), count);
    CHECK(cudaGetLastError());
    const unsigned blocks = unsigned(count < THREADS * 256 ? (count + THREADS - 1) / THREADS : 256);
    normalise<<<dim3(blocks, unsigned(batch_size)), THREADS, 0, stream>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(ln_weight),
        static_cast<const scalar_t*>(ln_bias), parts, count, eps);
    CHECK(cudaGetLastError());
    CHECK(cudaFreeAsync(parts, stream));
}
