#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

constexpr int V = 16 / sizeof(scalar_t);

__device__ __forceinline__ void load_vector(float (&v)[V], const scalar_t* from) {
    __align__(16) scalar_t raw[V];
    *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < V; ++i) v[i] = to_float(raw[i]);
}

__device__ __forceinline__ void store_vector(scalar_t* to, const float (&v)[V]) {
    __align__(16) scalar_t raw[V];
#pragma unroll
    for (int i = 0; i < V; ++i) raw[i] = from_float(v[i]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(raw);
}

// Sums of squares; every `every`-th stretch of 256 vectors, the place of which changes.
__global__ void squares_kernel(float* partials, const scalar_t* x, int64_t count, int every) {
    const int64_t vectors = count / V, stretches = (vectors + THREADS - 1) / THREADS;
    float sum = 0.0f;
    for (int64_t s = blockIdx.x; s * every < stretches; s += gridDim.x) {
        const int64_t at = (s * every + (static_cast<uint32_t>(s) * 2654435761u >> 8) % every) * THREADS + threadIdx.x;
        if (at >= vectors) continue;
        float v[V];
        load_vector(v, x + at * V);
#pragma unroll
        for (int j = 0; j < V; ++j) sum += v[j] * v[j];
    }
    if (every == 1 && blockIdx.x == 0) {
        for (int64_t i = vectors * V + threadIdx.x; i < count; i += THREADS) sum += to_float(x[i]) * to_float(x[i]);
    }
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

struct StoreRoot {
    float* norm;
    float factor;
    __device__ void operator()(float sum) const { *norm = sqrtf(factor * sum); }
};

// output = x / norm; where there are partials, sums squares as well; where there is `wanted`, only if that is set.
__global__ void write_kernel(scalar_t* output, const scalar_t* x, const float* norm, int64_t count, float* partials,
                             const int* wanted) {
    if (wanted != nullptr && *wanted == 0) return;
    const float divisor = *norm;
    const int64_t vectors = count / V;
    float sum = 0.0f;
    for (int64_t i = first_index(); i < vectors; i += index_step()) {
        float v[V];
        load_vector(v, x + i * V);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            if (partials != nullptr) sum += v[j] * v[j];
            v[j] = v[j] / divisor;
        }
        store_vector(output + i * V, v);
    }
    for (int64_t i = vectors * V + first_index(); i < count; i += index_step()) {
        const float v = to_float(x[i]);
        sum += v * v;
        output[i] = from_float(v / divisor);
    }
    if (partials == nullptr) return;
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2) {
    const int64_t count = batch_size * features * dim1 * dim2;
    Workspace workspace;
    float *partials = workspace.take_float(PARTIALS), *norms = workspace.take_float(3);
    squares_kernel<<<PARTIALS, THREADS>>>(partials, in(x), count, 1);
    finish_sum_kernel<<<1, THREADS>>>(partials, PARTIALS, StoreRoot{norms, 1.0f});
    write_kernel<<<PARTIALS, THREADS>>>(out(output), in(x), norms, count, nullptr, nullptr);
    check(cudaGetLastError());
}
