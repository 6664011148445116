#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__device__ float block_sum(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? part[lane] : 0.0f);
    __syncthreads();
    return v;
}
__device__ float block_max(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_max(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();
    return v;
}

// Per sample: the strata's sums (64 each of value, square), full sums.
constexpr int STRATA = 64;
struct Moments { float s[STRATA], q[STRATA], n[STRATA]; double fs, fq; float mean, scale; int full; };
static __device__ Moments moments[4096];

__global__ void reset_kernel() {
    if (threadIdx.x == 0) { moments[blockIdx.x].fs = 0; moments[blockIdx.x].fq = 0; }
}

// Block (stratum, sample) reads one 4096-element tile in eight of its stratum.
__global__ void probe_kernel(const scalar_t* x, int64_t count, int every) {
    const scalar_t* sample = x + blockIdx.y * count;
    const int64_t per = (count + STRATA - 1) / STRATA, begin = blockIdx.x * per,
                  end = begin + per < count ? begin + per : count;
    float s = 0, q = 0, n = 0;
    for (int64_t t = begin; t < end; t += 4096LL * every)
        for (int64_t i = t + threadIdx.x; i < t + 4096 && i < end; i += blockDim.x) {
            const float f = to_float(sample[i]);
            s += f; q += f * f; n += 1;
        }
    s = block_sum(s); q = block_sum(q); n = block_sum(n);
    if (threadIdx.x == 0) {
        Moments& m = moments[blockIdx.y];
        m.s[blockIdx.x] = s; m.q[blockIdx.x] = q; m.n[blockIdx.x] = n;
    }
}

__global__ void decide_kernel(float eps, int exact) {
    if (threadIdx.x) return;
    Moments& m = moments[blockIdx.x];
    double s = 0, q = 0, n = 0;
    for (int i = 0; i < STRATA; ++i) { s += m.s[i]; q += m.q[i]; n += m.n[i]; }
    const double mean = s / n, var = fmax(q / n - mean * mean, 0.0);
    bool same = var > 1e-6 && mean * mean < 64 * var;
    for (int i = 0; i < STRATA && !exact; ++i) {
        if (m.n[i] < 1) continue;
        const double mi = m.s[i] / m.n[i], vi = m.q[i] / m.n[i] - mi * mi;
        same = same && fabs(mi - mean) < 6 * sqrt(var / m.n[i]) && fabs(vi - var) < 0.1 * var;
    }
    m.full = !exact && !same;
    m.mean = mean;
    m.scale = rsqrt(var + eps);
}

__global__ void full_kernel(const scalar_t* x, int64_t count, int pass) {
    Moments& m = moments[blockIdx.y];
    if (!m.full) return;
    const float mean = pass ? static_cast<float>(m.fs / count) : 0.0f;
    float s = 0;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const float f = to_float(x[blockIdx.y * count + i]) - mean;
        s += pass ? f * f : f;
    }
    s = block_sum(s);
    if (threadIdx.x == 0) atomicAdd(pass ? &m.fq : &m.fs, static_cast<double>(s));
}

__global__ void write_kernel(scalar_t* out, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t count,
                             float eps) {
    const Moments& m = moments[blockIdx.y];
    const float mean = m.full ? static_cast<float>(m.fs / count) : m.mean;
    const float scale = m.full ? rsqrtf(static_cast<float>(m.fq / count) + eps) : m.scale;
    const int64_t base = blockIdx.y * count;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x)
        out[base + i] = from_float((to_float(x[base + i]) - mean) * scale * to_float(w[i]) + to_float(b[i]));
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2;
    const auto* in = static_cast<const scalar_t*>(x);
    if (batch_size > 4096) std::exit(1);
    // Short samples take the exact two-pass route.
    const bool sampled = false;
    const dim3 grid(128, batch_size);
    reset_kernel<<<batch_size, 32>>>();
    probe_kernel<<<dim3(STRATA, batch_size), 256>>>(in, count, sampled ? 8 : 1);
    decide_kernel<<<batch_size, 32>>>(eps, 0);
    full_kernel<<<grid, 256>>>(in, count, 0);
    full_kernel<<<grid, 256>>>(in, count, 1);
    write_kernel<<<dim3(512, batch_size), 256>>>(static_cast<scalar_t*>(output), in,
                                                static_cast<const scalar_t*>(ln_weight),
                                                static_cast<const scalar_t*>(ln_bias), count, eps);
    check(cudaGetLastError());
}
