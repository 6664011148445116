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

__device__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int o = 16; o > 0; o /= 2) value += __shfl_xor_sync(~0u, value, o);
    __syncthreads();
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < warps ? partial[lane] : 0.0f;
    for (int o = 16; o > 0; o /= 2) value += __shfl_xor_sync(~0u, value, o);
    return value;
}

constexpr int ROUNDS = 4, CHUNK = 256 * ROUNDS * VEC;

// Mean and squared deviations of a chunk, which stays in registers.
__global__ void chunk_kernel(float2* parts, const scalar_t* x, int64_t count, bool packed) {
    const scalar_t* sample = x + blockIdx.y * count;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * CHUNK;
    const int held = static_cast<int>(min(static_cast<int64_t>(CHUNK), count - first));
    Pack kept[ROUNDS];
    float sum = 0.0f;
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        const int at = (r * 256 + threadIdx.x) * VEC;
        if (packed && at + VEC <= held) {
            kept[r] = *reinterpret_cast<const Pack*>(sample + first + at);
        } else {
            for (int j = 0; j < VEC; ++j) {
                if (at + j < held) kept[r].v[j] = sample[first + at + j];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        const int at = (r * 256 + threadIdx.x) * VEC;
        for (int j = 0; j < VEC; ++j) sum += at + j < held ? to_float(kept[r].v[j]) : 0.0f;
    }
    const float mean = block_sum(sum) / held;
    float squares = 0.0f;
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        const int at = (r * 256 + threadIdx.x) * VEC;
        for (int j = 0; j < VEC; ++j) {
            const float d = at + j < held ? to_float(kept[r].v[j]) - mean : 0.0f;
            squares += d * d;
        }
    }
    squares = block_sum(squares);
    if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = {mean, squares};
}

__global__ void sample_kernel(float2* stats, const float2* parts, int chunks, int64_t count, float eps) {
    const float2* own = parts + static_cast<int64_t>(blockIdx.x) * chunks;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < chunks; i += blockDim.x) sum += own[i].x * (min(static_cast<int64_t>(CHUNK), count - static_cast<int64_t>(i) * CHUNK) / static_cast<float>(count));
    const float mean = block_sum(sum);
    float squares = 0.0f;
    for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
        const float d = own[i].x - mean;
        squares += own[i].y + d * d * min(static_cast<int64_t>(CHUNK), count - static_cast<int64_t>(i) * CHUNK);
    }
    squares = block_sum(squares);
    if (threadIdx.x == 0) stats[blockIdx.x] = {mean, rsqrtf(squares / count + eps)};
}

__global__ void apply_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                             const float2* stats, int64_t count, bool packed) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const float2 s = stats[blockIdx.y];
    x += blockIdx.y * count;
    output += blockIdx.y * count;
    if (packed) {
        if (i * VEC >= count) return;
        Pack p = reinterpret_cast<const Pack*>(x)[i];
        const Pack w = reinterpret_cast<const Pack*>(weight)[i], b = reinterpret_cast<const Pack*>(bias)[i];
        for (int j = 0; j < VEC; ++j) p.v[j] = from_float((to_float(p.v[j]) - s.x) * s.y * to_float(w.v[j]) + to_float(b.v[j]));
        reinterpret_cast<Pack*>(output)[i] = p;
    } else if (i < count) {
        output[i] = from_float((to_float(x[i]) - s.x) * s.y * to_float(weight[i]) + to_float(bias[i]));
    }
}

static void run(cudaStream_t stream, void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size, int64_t features,
                int64_t dim1, int64_t dim2, float eps) {
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t count = features * dim1 * dim2;
    const int chunks = static_cast<int>((count + CHUNK - 1) / CHUNK);
    static float2* scratch = nullptr;
    static int64_t room = 0;
    if (batch_size * (chunks + 1) > room) {
        check(cudaFree(scratch));
        room = batch_size * (chunks + 1);
        check(cudaMalloc(&scratch, room * sizeof(float2)));
    }
    float2* stats = scratch + batch_size * chunks;
    const bool packed = count % VEC == 0;
    chunk_kernel<<<dim3(chunks, batch_size), 256, 0, stream>>>(scratch, in, count, packed);
    check(cudaGetLastError());
    sample_kernel<<<batch_size, 256, 0, stream>>>(stats, scratch, chunks, count, eps);
    check(cudaGetLastError());
    const int64_t items = packed ? count / VEC : count;
    apply_kernel<<<dim3((items + 255) / 256, batch_size), 256, 0, stream>>>(
        static_cast<scalar_t*>(output), in, static_cast<const scalar_t*>(ln_weight), static_cast<const scalar_t*>(ln_bias), stats,
        count, packed);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    run(0, output, x, ln_weight, ln_bias, batch_size, features, dim1, dim2, eps);
}
