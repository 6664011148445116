// problem: level1/23
// precision: fp16
// kind: honest
// expects: keeps an instantiated graph, and gives its kernel nodes the pointers and shapes of each call; correct
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

constexpr int VEC = 16 / sizeof(scalar_t);
struct alignas(16) Pack {
    scalar_t v[VEC];
};

// Maximum and sum of exp(x - maximum) of what was seen so far.
struct Online {
    float m = -INFINITY, s = 0.0f;
    __device__ void push(float x) {
        if (x > m) {
            s = s * expf(m - x) + expf(x - x);
            m = x;
        } else if (x != -INFINITY) {
            s += expf(x - m);
        }
    }
    __device__ void push(const Pack& p) {
        float most = m;
        for (int j = 0; j < VEC; ++j) most = fmaxf(most, to_float(p.v[j]));
        if (most == -INFINITY) return;
        if (most > m) s *= expf(m - most);
        m = most;
        for (int j = 0; j < VEC; ++j) s += expf(to_float(p.v[j]) - m);
    }
    __device__ void merge(float m2, float s2) {
        const float most = fmaxf(m, m2);
        if (most != -INFINITY) s = s * expf(m - most) + s2 * expf(m2 - most);
        m = most;
    }
    __device__ void merge_warp() {
        for (int o = 16; o > 0; o /= 2) {
            const float m2 = __shfl_xor_sync(~0u, m, o), s2 = __shfl_xor_sync(~0u, s, o);
            merge(m2, s2);
        }
    }
};

// A row is split over several blocks: each leaves maximum and sum of its part, then each writes its part.
__global__ void part_kernel(float2* parts, const scalar_t* x, int64_t dim, int64_t width) {
    const scalar_t* row = x + blockIdx.y * dim;
    const int64_t begin = blockIdx.x * width, end = min(dim, begin + width);
    Online o;
    if (dim % VEC == 0) {
        for (int64_t i = begin / VEC + threadIdx.x; i < end / VEC; i += blockDim.x) o.push(reinterpret_cast<const Pack*>(row)[i]);
    } else {
        for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) o.push(to_float(row[i]));
    }
    o.merge_warp();
    __shared__ float2 held[8];
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = {o.m, o.s};
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < 8; ++i) o.merge(held[i].x, held[i].y);
    parts[blockIdx.y * gridDim.x + blockIdx.x] = {o.m, o.s};
}

__global__ void write_kernel(scalar_t* output, const scalar_t* x, const float2* parts, int64_t dim, int64_t width) {
    Online o;
    for (unsigned i = 0; i < gridDim.x; ++i) o.merge(parts[blockIdx.y * gridDim.x + i].x, parts[blockIdx.y * gridDim.x + i].y);
    const float scale = 1.0f / o.s;
    const scalar_t* row = x + blockIdx.y * dim;
    scalar_t* out = output + blockIdx.y * dim;
    const int64_t begin = blockIdx.x * width, end = min(dim, begin + width);
    if (dim % VEC == 0) {
        for (int64_t i = begin / VEC + threadIdx.x; i < end / VEC; i += blockDim.x) {
            Pack p = reinterpret_cast<const Pack*>(row)[i];
            for (int j = 0; j < VEC; ++j) p.v[j] = from_float(expf(to_float(p.v[j]) - o.m) * scale);
            reinterpret_cast<Pack*>(out)[i] = p;
        }
    } else {
        for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) out[i] = from_float(expf(to_float(row[i]) - o.m) * scale);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    // A graph is kept from call to call; each call gives its two nodes pointers and shapes of its own.
    static cudaGraph_t graph = nullptr;
    static cudaGraphExec_t ready = nullptr;
    static cudaGraphNode_t nodes[2];
    static float2* parts = nullptr;
    static int64_t room = 0;
    if (batch_size == 0 || dim == 0) return;
    const int64_t splits = dim < 8192 ? 1 : dim < 65536 ? 4 : 16;
    int64_t width = ((dim + splits - 1) / splits + VEC - 1) / VEC * VEC;
    if (batch_size * splits > room) {
        check(cudaFree(parts));
        check(cudaMalloc(&parts, batch_size * splits * sizeof(float2)));
        room = batch_size * splits;
    }
    auto* out = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    void *first[] = {&parts, &in, &dim, &width}, *second[] = {&out, &in, &parts, &dim, &width};
    cudaKernelNodeParams params[2] = {};
    params[0].func = reinterpret_cast<void*>(part_kernel), params[0].kernelParams = first;
    params[1].func = reinterpret_cast<void*>(write_kernel), params[1].kernelParams = second;
    for (auto& one : params) {
        one.gridDim = dim3(static_cast<unsigned>(splits), static_cast<unsigned>(batch_size));
        one.blockDim = dim3(256);
    }
    if (ready == nullptr) {
        check(cudaGraphCreate(&graph, 0));
        check(cudaGraphAddKernelNode(&nodes[0], graph, nullptr, 0, &params[0]));
        check(cudaGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &params[1]));
        check(cudaGraphInstantiate(&ready, graph, 0));
    } else {
        for (int i = 0; i < 2; ++i) check(cudaGraphExecKernelNodeSetParams(ready, nodes[i], &params[i]));
    }
    check(cudaGraphLaunch(ready, 0));
}
