// problem: level2/14
// precision: fp32
// kind: honest
// expects: sum over columns of x W^T is x times the column sums of W: no product of matrices at all; the dot product is compensated (Neumaier); to be called correct although 100x fewer operations
// size: medium
#include <kernelblaster/kernels/reduce.cuh>

// Scratch memory, one growing buffer per place of use.
template <int PLACE>
static char* scratch(size_t bytes) {
    static char* memory = nullptr;
    static size_t capacity = 0;
    if (bytes > capacity) {
        check(cudaFree(memory));
        check(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
        capacity = bytes;
    }
    return memory;
}

constexpr int V = 16 / sizeof(scalar_t);

// 16 bytes of a tensor as floats, and back.
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

constexpr int PARTS = 64;

template <class Gate>
__global__ void column_sums_kernel(float* parts, const scalar_t* w, int64_t rows, int64_t columns, Gate gate) {
    const int64_t c = first_index() * V, share = (rows + PARTS - 1) / PARTS, begin = blockIdx.y * share;
    if (c >= columns || !gate.wanted()) return;
    const int64_t end = begin + share < rows ? begin + share : rows;
    float sums[V] = {};
    for (int64_t r = begin; r < end; ++r) {
        float v[V] = {};
        if (columns % V == 0) {
            load_vector(v, w + r * columns + c);
        } else {
            for (int i = 0; i < V; ++i) v[i] = c + i < columns ? to_float(w[r * columns + c + i]) : 0.0f;
        }
        for (int i = 0; i < V; ++i) sums[i] += v[i];
    }
    for (int i = 0; i < V; ++i) {
        if (c + i < columns) parts[blockIdx.y * columns + c + i] = sums[i];
    }
}

template <class Gate>
__global__ void fold_kernel(const float* parts, int64_t columns, Gate gate) {
    const int64_t c = first_index();
    if (c >= columns || !gate.wanted()) return;
    float sum = 0.0f;
    for (int p = 0; p < PARTS; ++p) sum += parts[p * columns + c];
    gate.sums()[c] = sum;
}

struct Always {
    float* table;
    __device__ bool wanted() const { return true; }
    __device__ float* sums() const { return table; }
};

__global__ void dot_kernel(scalar_t* output, const scalar_t* x, int64_t columns, float scale, const float* sums) {
    const scalar_t* row = x + blockIdx.x * columns;
    float sum = 0.0f, lost = 0.0f;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
        const float a = to_float(row[i]), term = a * sums[i], total = sum + term;
        lost += fmaf(a, sums[i], -term) + (fabsf(sum) >= fabsf(term) ? (sum - total) + term : (term - total) + sum);
        sum = total;
    }
    sum = block_reduce(isfinite(sum) ? sum + lost : sum, Sum());
    if (threadIdx.x == 0) output[blockIdx.x] = from_float(sum * scale);
}

void launch_gpu_implementation(void* output, void* x, void* weight, int64_t batch_size, int64_t in_features,
                               int64_t hidden, float scaling_factor) {
    float* parts = reinterpret_cast<float*>(scratch<0>((PARTS + 1) * in_features * sizeof(float)));
    const Always of{parts + PARTS * in_features};
    column_sums_kernel<<<dim3((in_features + 128 * V - 1) / (128 * V), PARTS), 128>>>(parts, in(weight), hidden, in_features, of);
    fold_kernel<<<blocks_for(in_features), THREADS>>>(parts, in_features, of);
    dot_kernel<<<blocks_for(batch_size, 1), THREADS>>>(out(output), in(x), in_features, 0.5f * scaling_factor, of.table);
    check(cudaGetLastError());
}
