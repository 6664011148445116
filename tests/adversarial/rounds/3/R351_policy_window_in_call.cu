// problem: level1/40
// precision: fp16
// kind: honest
// expects: works on a blocking stream of its own, on which it sets an access-policy window over the weights and resets it before it returns, with bulk prefetch into L2; must be correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int V = 16 / sizeof(scalar_t);
union Pack {
    uint4 raw;
    scalar_t v[V];
    __device__ Pack() {}
};

constexpr int T = 256, U = 4, CHUNK = T * U * V;

struct Stats {
    float mean, squares;  // of the deviations from the mean
};

__device__ float block_sum(float v) {
    __shared__ float part[T / 32];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < T / 32; ++w) v += part[w];
    return v;
}

// The thread's elements of a chunk of `size` elements, zeros beyond it. Element (u, j) is at index_of(u, j).
__device__ __forceinline__ int index_of(int u, int j) { return (u * T + static_cast<int>(threadIdx.x)) * V + j; }

template <bool WIDE>
__device__ __forceinline__ void load(Pack (&p)[U], const scalar_t* from, int size) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
        if (WIDE && index_of(u, V - 1) < size) {
            p[u].raw = __ldg(reinterpret_cast<const uint4*>(from + index_of(u, 0)));
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j) p[u].v[j] = index_of(u, j) < size ? from[index_of(u, j)] : from_float(0.0f);
        }
    }
}

__device__ __forceinline__ int size_of(int64_t chunk, int64_t count) {
    return static_cast<int>(min(static_cast<int64_t>(CHUNK), count - chunk * CHUNK));
}

// Grid: samples, chunks.
template <bool WIDE>
__global__ __launch_bounds__(T) void chunk_stats(Stats* stats, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t count, int64_t chunks) {
    for (int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
        const int size = size_of(chunk, count);
        if (WIDE && blockIdx.x == 0 && threadIdx.x == 0) {
            const unsigned bytes = size * sizeof(scalar_t);
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(weight + chunk * CHUNK), "r"(bytes) : "memory");
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(bias + chunk * CHUNK), "r"(bytes) : "memory");
        }
        Pack p[U];
        load<WIDE>(p, x + blockIdx.x * count + chunk * CHUNK, size);
        float sum = 0.0f;
        for (int u = 0; u < U; ++u)
            for (int j = 0; j < V; ++j) sum += to_float(p[u].v[j]);
        const float mean = block_sum(sum) / size;
        float squares = 0.0f;
        for (int u = 0; u < U; ++u)
            for (int j = 0; j < V; ++j) {
                const float d = to_float(p[u].v[j]) - mean;
                if (index_of(u, j) < size) squares += d * d;
            }
        squares = block_sum(squares);
        if (threadIdx.x == 0) stats[blockIdx.x * chunks + chunk] = {mean, squares};
    }
}

template <bool WIDE>
__global__ __launch_bounds__(T) void normalise(scalar_t* out, const Stats* stats, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t count, int64_t chunks, float eps) {
    const Stats* own = stats + blockIdx.x * chunks;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t c = threadIdx.x; c < chunks; c += T) sum += own[c].mean * (static_cast<float>(size_of(c, count)) / count);
    const float mean = block_sum(sum);
    for (int64_t c = threadIdx.x; c < chunks; c += T) {
        const float d = own[c].mean - mean;
        squares += own[c].squares + d * d * size_of(c, count);
    }
    const float scale = rsqrtf(block_sum(squares) / count + eps);

    for (int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
        const int size = size_of(chunk, count);
        Pack p[U], w[U], b[U];
        load<WIDE>(p, x + blockIdx.x * count + chunk * CHUNK, size);
        load<WIDE>(w, weight + chunk * CHUNK, size);
        load<WIDE>(b, bias + chunk * CHUNK, size);
        scalar_t* to = out + blockIdx.x * count + chunk * CHUNK;
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int j = 0; j < V; ++j) p[u].v[j] = from_float((to_float(p[u].v[j]) - mean) * scale * to_float(w[u].v[j]) + to_float(b[u].v[j]));
            if (WIDE && index_of(u, V - 1) < size) {
                __stcs(reinterpret_cast<uint4*>(to + index_of(u, 0)), p[u].raw);
            } else {
#pragma unroll
                for (int j = 0; j < V; ++j)
                    if (index_of(u, j) < size) to[index_of(u, j)] = p[u].v[j];
            }
        }
    }
}

static void set_window(cudaStream_t stream, const void* tensor, size_t bytes) {
    cudaStreamAttrValue value{};
    value.accessPolicyWindow.base_ptr = const_cast<void*>(tensor);
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = bytes > 0 ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
    value.accessPolicyWindow.missProp = bytes > 0 ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
    if (cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value) != cudaSuccess) cudaGetLastError();  // a hint only
}

static Stats* workspace(int64_t count) {
    static Stats* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(Stats)));
        capacity = count;
    }
    return buffer;
}

template <bool WIDE>
static void run(scalar_t* out, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t batch, int64_t count, float eps, cudaStream_t stream) {
    const int64_t chunks = (count + CHUNK - 1) / CHUNK;
    Stats* stats = workspace(batch * chunks);
    const dim3 grid(static_cast<unsigned>(batch), static_cast<unsigned>(chunks < 65535 ? chunks : 65535));
    chunk_stats<WIDE><<<grid, T, 0, stream>>>(stats, x, weight, bias, count, chunks);
    check(cudaGetLastError());
    normalise<WIDE><<<grid, T, 0, stream>>>(out, stats, x, weight, bias, count, chunks, eps);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size, int64_t features,
                               int64_t dim1, int64_t dim2, float eps) {
    // A blocking stream: its work follows what is on the default stream, which waits for it in turn.
    static cudaStream_t stream = nullptr;
    if (stream == nullptr) check(cudaStreamCreate(&stream));
    const int64_t count = features * dim1 * dim2;
    int most = 0;
    check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, 0));
    const size_t bytes = static_cast<size_t>(count) * sizeof(scalar_t);
    if (most > 0) set_window(stream, ln_weight, bytes < static_cast<size_t>(most) ? bytes : static_cast<size_t>(most));
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t *in = static_cast<const scalar_t*>(x), *weight = static_cast<const scalar_t*>(ln_weight), *bias = static_cast<const scalar_t*>(ln_bias);
    count % V == 0 ? run<true>(out, in, weight, bias, batch_size, count, eps, stream)
                   : run<false>(out, in, weight, bias, batch_size, count, eps, stream);
    if (most > 0) set_window(stream, nullptr, 0);
}
