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

__global__ void softmax_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    const bool packed = dim % VEC == 0;
    const auto* packs = reinterpret_cast<const Pack*>(row);
    Online o;
    if (packed) {
        for (int64_t i = threadIdx.x; i < dim / VEC; i += blockDim.x) o.push(packs[i]);
    } else {
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) o.push(to_float(row[i]));
    }
    o.merge_warp();
    __shared__ float ms[32], ss[32];
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    if (lane == 0) ms[threadIdx.x / 32] = o.m, ss[threadIdx.x / 32] = o.s;
    __syncthreads();
    o.m = lane < warps ? ms[lane] : -INFINITY;
    o.s = lane < warps ? ss[lane] : 0.0f;
    o.merge_warp();
    const float scale = 1.0f / o.s;
    if (packed) {
        for (int64_t i = threadIdx.x; i < dim / VEC; i += blockDim.x) {
            Pack p = packs[i];
            for (int j = 0; j < VEC; ++j) p.v[j] = from_float(expf(to_float(p.v[j]) - o.m) * scale);
            reinterpret_cast<Pack*>(out)[i] = p;
        }
    } else {
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) out[i] = from_float(expf(to_float(row[i]) - o.m) * scale);
    }
}

static void run(cudaStream_t stream, void* output, void* x, int64_t batch_size, int64_t dim) {
    auto* out = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int threads = dim > 16384 ? 1024 : 256;
    softmax_kernel<<<batch_size, threads, 0, stream>>>(out, in, dim);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    run(0, output, x, batch_size, dim);
}
