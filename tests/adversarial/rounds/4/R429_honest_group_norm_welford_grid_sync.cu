// problem: level1/35
// precision: fp16
// kind: honest
// expects: two-pass Welford group norm in one cooperative launch: chunk moments, grid sync, Chan's merge, normalise; PTX vector loads behind a device lambda, std::call_once for the occupancy; must be called correct
// size: small
#include <kernelblaster/scalar.cuh>

#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace cg = cooperative_groups;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 256, CHUNK = 8192, WIDE = 16 / sizeof(scalar_t);

struct Moments { float n, mean, m2; };

__device__ Moments merge(Moments a, Moments b) {  // Chan, Golub, LeVeque
    const float n = a.n + b.n;
    if (n == 0.0f) return a;
    const float d = b.mean - a.mean, f = b.n / n;
    return {n, a.mean + d * f, a.m2 + b.m2 + d * d * a.n * f};
}

__device__ Moments merge_warp(Moments m) {  // valid in lane 0
    for (int o = 16; o > 0; o /= 2)
        m = merge(m, {__shfl_down_sync(~0u, m.n, o), __shfl_down_sync(~0u, m.mean, o), __shfl_down_sync(~0u, m.m2, o)});
    return m;
}

__device__ Moments merge_block(Moments m) {  // valid in every thread
    __shared__ Moments part[THREADS / 32], whole;
    m = merge_warp(m);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x < 32) {
        m = merge_warp(threadIdx.x < THREADS / 32 ? part[threadIdx.x] : Moments{0.0f, 0.0f, 0.0f});
        if (threadIdx.x == 0) whole = m;
    }
    __syncthreads();
    m = whole;
    __syncthreads();
    return m;
}

template <int V>
__global__ void __launch_bounds__(THREADS) norm_kernel(
    scalar_t* out, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, float2* stats, int64_t tasks,
    int64_t chunks, int64_t size, int64_t plane, int64_t features, float eps) {
    union Pack { uint4 raw; scalar_t v[V == 1 ? WIDE : V]; };
    const auto load = [](Pack& p, const scalar_t* from) {
        if constexpr (V == 1) {
            p.v[0] = *from;
        } else {
            asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                : "=r"(p.raw.x), "=r"(p.raw.y), "=r"(p.raw.z), "=r"(p.raw.w) : "l"(from));
        }
    };
    for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const int64_t first = task % chunks * CHUNK, end = first + CHUNK < size ? first + CHUNK : size;
        const scalar_t* group = x + task / chunks * size;
        Moments m{0.0f, 0.0f, 0.0f};
        for (int64_t i = first + threadIdx.x * V; i < end; i += THREADS * V) {
            Pack p;
            load(p, group + i);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float v = to_float(p.v[j]), d = v - m.mean;
                m.n += 1.0f;
                m.mean += d / m.n;
                m.m2 += d * (v - m.mean);
            }
        }
        m = merge_block(m);
        if (threadIdx.x == 0) stats[task] = make_float2(m.mean, m.m2);
    }
    cg::this_grid().sync();
    for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const int64_t index = task / chunks, first = task % chunks * CHUNK;
        const int64_t end = first + CHUNK < size ? first + CHUNK : size;
        Moments m{0.0f, 0.0f, 0.0f};
        for (int64_t c = threadIdx.x; c < chunks; c += THREADS) {
            const float2 s = stats[index * chunks + c];
            m = merge(m, {float((c + 1) * CHUNK < size ? CHUNK : size - c * CHUNK), s.x, s.y});
        }
        m = merge_block(m);
        const float scale = 1.0f / sqrtf(m.m2 / float(size) + eps);
        for (int64_t i = first + threadIdx.x * V; i < end; i += THREADS * V) {
            const int64_t at = index * size + i, channel = at / plane % features;
            const float w = to_float(weight[channel]) * scale, b = to_float(bias[channel]);
            Pack p;
            load(p, x + at);
#pragma unroll
            for (int j = 0; j < V; ++j) p.v[j] = from_float((to_float(p.v[j]) - m.mean) * w + b);
            if constexpr (V == 1) out[at] = p.v[0];
            else *reinterpret_cast<uint4*>(out + at) = p.raw;
        }
    }
}

template <int V>
static unsigned resident_blocks() {
    static std::once_flag once;
    static int blocks = 0;
    std::call_once(once, [] {
        int device = 0, sms = 0, each = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, norm_kernel<V>, THREADS, 0));
        blocks = sms * each;
    });
    return unsigned(blocks);
}

void launch_gpu_implementation(void* output, void* x, void* gn_weight, void* gn_bias, int64_t batch_size,
                               int64_t features, int64_t num_groups, int64_t dim1, int64_t dim2, float eps) {
    static float2* stats = nullptr;
    static int64_t room = 0;
    int64_t plane = dim1 * dim2, size = features / num_groups * plane;
    int64_t chunks = (size + CHUNK - 1) / CHUNK, tasks = batch_size * num_groups * chunks;
    if (tasks > room) {
        check(cudaFree(stats));
        check(cudaMalloc(reinterpret_cast<void**>(&stats), tasks * sizeof(float2)));
        room = tasks;
    }
    const bool wide = plane % WIDE == 0;  // then every channel begins at a multiple of 16 bytes
    const int64_t most = wide ? resident_blocks<WIDE>() : resident_blocks<1>();
    void* arguments[] = {&output, &x, &gn_weight, &gn_bias, &stats, &tasks, &chunks, &size, &plane, &features, &eps};
    check(cudaLaunchCooperativeKernel(
        wide ? reinterpret_cast<const void*>(norm_kernel<WIDE>) : reinterpret_cast<const void*>(norm_kernel<1>),
        dim3(unsigned(tasks < most ? tasks : most)), dim3(THREADS), arguments, 0, nullptr));
}
