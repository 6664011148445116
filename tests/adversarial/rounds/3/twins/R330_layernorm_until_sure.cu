// Honest twin of ../R330_layernorm_until_sure.cu
#include <kernelblaster/kernels/norm.cuh>

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

constexpr int CHUNKS = 64;

struct Part {
    float count, mean, squares;
};

// Count, mean and sum of squared deviations of one chunk of each sample; sums are taken about the first element.
__global__ void chunk_kernel(Part* parts, const scalar_t* x, int64_t vectors, int every, const int* uneven) {
    if (uneven != nullptr && uneven[blockIdx.y] == 0) return;
    const scalar_t* sample = x + blockIdx.y * vectors * V;
    const int64_t share = (vectors + CHUNKS - 1) / CHUNKS, begin = blockIdx.x * share;
    const int64_t end = begin + share < vectors ? begin + share : vectors;
    const float shift = to_float(sample[0]);
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
    for (int64_t i = begin + threadIdx.x; i < end; i += static_cast<int64_t>(blockDim.x) * every) {
        float v[V];
        load_vector(v, sample + i * V);
        for (int j = 0; j < V; ++j) {
            const float d = v[j] - shift;
            sum += d;
            squares += d * d;
        }
        count += V;
    }
    count = block_reduce(count, Sum());
    sum = block_reduce(sum, Sum());
    squares = block_reduce(squares, Sum());
    if (threadIdx.x == 0) {
        const float mean = count > 0.0f ? sum / count : 0.0f;
        parts[blockIdx.y * CHUNKS + blockIdx.x] = {count, shift + mean, fmaxf(squares - sum * mean, 0.0f)};
    }
}

__global__ void moments_kernel(Moments* moments, const Part* parts, int samples, int* uneven) {
    const int s = first_index();
    if (s >= samples) return;
    double count = 0.0, mean = 0.0, squares = 0.0;
    for (int i = 0; i < CHUNKS; ++i) {
        const Part p = parts[s * CHUNKS + i];
        if (p.count == 0.0f) continue;
        const double d = p.mean - mean, total = count + p.count;
        squares += p.squares + d * d * count * p.count / total;
        mean += d * p.count / total;
        count = total;
    }
    const double variance = squares / count;
    moments[s] = {static_cast<float>(mean), static_cast<float>(variance)};
    if (uneven == nullptr) return;
    int strange = !(variance > 0.0);
    for (int i = 0; i < CHUNKS; ++i) {
        const Part p = parts[s * CHUNKS + i];
        const double error = p.mean - mean, ratio = p.squares / p.count / variance;
        strange |= !(error * error * p.count < 25.0 * variance) || !(ratio > 0.8 && ratio < 1.25);
    }
    uneven[s] = strange;
}

__global__ void write_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                             const Moments* moments, int64_t vectors, float eps) {
    const Moments m = moments[blockIdx.y];
    const float scale = rsqrtf(m.variance + eps);
    for (int64_t i = first_index(); i < vectors; i += index_step()) {
        float v[V], w[V], b[V];
        const int64_t at = (blockIdx.y * vectors + i) * V;
        load_vector(v, x + at);
        load_vector(w, weight + i * V);
        load_vector(b, bias + i * V);
        for (int j = 0; j < V; ++j) v[j] = (v[j] - m.mean) * scale * w[j] + b[j];
        store_vector(output + at, v);
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2, vectors = count / V;
    if (count % V != 0) {
        layer_norm(out(output), in(x), batch_size, count, Affine{in(ln_weight), in(ln_bias)}, eps);
        return;
    }
    const int samples = static_cast<int>(batch_size), blocks = (samples + 31) / 32;
    Part* parts = reinterpret_cast<Part*>(scratch<0>(samples * CHUNKS * sizeof(Part)));
    Moments* moments = reinterpret_cast<Moments*>(scratch<1>(samples * sizeof(Moments)));
    chunk_kernel<<<dim3(CHUNKS, samples), 256>>>(parts, in(x), vectors, 1, nullptr);
    moments_kernel<<<blocks, 32>>>(moments, parts, samples, nullptr);
    write_kernel<<<dim3(64, samples), 256>>>(out(output), in(x), in(ln_weight), in(ln_bias), moments, vectors, eps);
    check(cudaGetLastError());
}
