// KernelBlaster: level1/023, fp16, size medium
// measured speed-up over the start 15.916x (95 %: 15.826 to 15.955), 1938.24 us -> 121.78 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// Softmax over rows. Long rows: resident clusters of 8 blocks walk over the rows; a row stays in shared memory (read
// once, written once). While a row is normalised and written, its slots are refilled with the next row. Maxima are kept
// in the log2 domain: the same rounded reference serves the sum and the quotient, so its rounding cancels.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

namespace {

constexpr int kCluster = 8;                                // blocks of one row
constexpr int kWarps = 16;                                 // warps per block
constexpr int kThreads = kWarps * 32;
constexpr int kUnits = kCluster * kWarps;                  // warps of one row
constexpr int kChunks = 3;                                 // chunks of a warp's slice
constexpr int kPerLane = 4;                                // 16-byte vectors per lane and chunk
constexpr int kChunkVecs = kPerLane * 32;
constexpr int kSliceVecs = kChunks * kChunkVecs;           // vectors of a warp at most
constexpr int64_t kMaxVecs = static_cast<int64_t>(kUnits) * kSliceVecs;
constexpr int kDataBytes = kWarps * kSliceVecs * 16;
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLowest = -65504.0f * kLog2e;              // finite start: -inf inputs give no NaN by themselves
constexpr uint32_t kNegInf2 = 0xFC00FC00u;                 // two fp16 -infinity

__device__ __forceinline__ float ex2(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

__device__ __forceinline__ uint32_t smem_addr(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ uint64_t evict_first_policy() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

__device__ __forceinline__ void store_remote(const void* local, int rank, float a, float b) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(smem_addr(local)), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(a), "f"(b) : "memory");
}

// (maximum times log2 e, sum of exponentials relative to it) over the 32 lanes; every lane receives the result.
__device__ __forceinline__ void warp_combine(float& m, float& s) {
    float top = m;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    s *= ex2(m - top);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) s += __shfl_xor_sync(0xffffffffu, s, offset);
    m = top;
}

__device__ __forceinline__ __half2 as_half2(uint32_t v) { return *reinterpret_cast<__half2*>(&v); }
__device__ __forceinline__ uint32_t as_u32(__half2 v) { return *reinterpret_cast<uint32_t*>(&v); }

// Adds kPerLane vectors (8 values each) to the running (maximum, sum).
__device__ __forceinline__ void accumulate(const uint4 (&v)[kPerLane], float& m, float& s) {
    __half2 top = as_half2(v[0].x);
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
        top = __hmax2(top, __hmax2(__hmax2(as_half2(v[j].x), as_half2(v[j].y)),
                                   __hmax2(as_half2(v[j].z), as_half2(v[j].w))));
    }
    const float2 t = __half22float2(top);
    const float next = fmaxf(m, fmaxf(t.x, t.y) * kLog2e);
    if (next > m) {
        s *= ex2(m - next);
        m = next;
    }
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
        const float2 p = __half22float2(as_half2(v[j].x)), q = __half22float2(as_half2(v[j].y));
        const float2 r = __half22float2(as_half2(v[j].z)), u = __half22float2(as_half2(v[j].w));
        a0 += ex2(fmaf(p.x, kLog2e, -m));
        a1 += ex2(fmaf(p.y, kLog2e, -m));
        a2 += ex2(fmaf(q.x, kLog2e, -m));
        a3 += ex2(fmaf(q.y, kLog2e, -m));
        a0 += ex2(fmaf(r.x, kLog2e, -m));
        a1 += ex2(fmaf(r.y, kLog2e, -m));
        a2 += ex2(fmaf(u.x, kLog2e, -m));
        a3 += ex2(fmaf(u.y, kLog2e, -m));
    }
    s += (a0 + a1) + (a2 + a3);
}

__device__ __forceinline__ uint32_t normalise(uint32_t v, float m, float inverse) {
    const float2 f = __half22float2(as_half2(v));
    return as_u32(__floats2half2_rn(ex2(fmaf(f.x, kLog2e, -m)) * inverse, ex2(fmaf(f.y, kLog2e, -m)) * inverse));
}

__device__ __forceinline__ uint4 normalise(uint4 v, float m, float inverse) {
    return make_uint4(normalise(v.x, m, inverse), normalise(v.y, m, inverse), normalise(v.z, m, inverse),
                      normalise(v.w, m, inverse));
}

// Combines the (maximum, sum) pairs of all warps of the row.
__device__ __forceinline__ void row_combine(const float2* pairs, int lane, float& m, float& s) {
    float2 p[kUnits / 32];
    m = kLowest;
#pragma unroll
    for (int i = 0; i < kUnits / 32; ++i) {
        p[i] = pairs[i * 32 + lane];
        m = fmaxf(m, p[i].x);
    }
    s = 0.0f;
#pragma unroll
    for (int i = 0; i < kUnits / 32; ++i) s += p[i].y * ex2(p[i].x - m);
    warp_combine(m, s);
}

__device__ __forceinline__ void copy_async(void* dst, const void* src, uint64_t policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(smem_addr(dst)), "l"(src),
                 "l"(policy)
                 : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Every lane copies and reads back its own 16-byte vectors only, so that no block barrier is needed for the data.
template <bool kFull>
__global__ void __launch_bounds__(kThreads, 2)
    softmax_cluster_kernel(__half* __restrict__ output, const __half* __restrict__ x, int64_t rows, int64_t dim,
                           int slice) {
    extern __shared__ uint4 data[];
    __shared__ float2 pairs[2][kUnits];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int rank = blockIdx.x % kCluster;
    const int clusters = gridDim.x / kCluster;
    const int unit = rank * kWarps + warp;

    const int64_t begin = static_cast<int64_t>(unit) * (kFull ? kSliceVecs : slice);
    int count = kSliceVecs;
    if (!kFull) {
        const int64_t left = dim / 8 - begin;
        count = left <= 0 ? 0 : (left < slice ? static_cast<int>(left) : slice);
    }
    const int64_t row_vecs = dim / 8;
    int64_t row = blockIdx.x / kCluster;
    const uint4* src = reinterpret_cast<const uint4*>(x) + row * row_vecs + begin + lane;
    uint4* dst = reinterpret_cast<uint4*>(output) + row * row_vecs + begin + lane;
    const int64_t step = clusters * row_vecs;
    uint4* mine = data + warp * kSliceVecs + lane;

    const uint64_t policy = evict_first_policy();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int j = 0; j < kPerLane; ++j) {
            const int i = c * kChunkVecs + j * 32;
            if (kFull || i + lane < count) copy_async(mine + i, src + i, policy);
        }
        copy_commit();
    }
    cluster_arrive();  // before the first remote store: all blocks of the cluster have started
    cluster_wait();

    // One cluster barrier per row: the pairs alternate between two buffers. A block that sends the pairs of row r + 2
    // has passed the barrier of row r + 1, where everybody arrived after having read the pairs of row r.
    int parity = 0;
    for (; row < rows; row += clusters, parity ^= 1) {
        float m = kLowest, s = 0.0f;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            if (c == 0) copy_wait<2>();
            else if (c == 1) copy_wait<1>();
            else copy_wait<0>();
            uint4 v[kPerLane];
#pragma unroll
            for (int j = 0; j < kPerLane; ++j) {
                const int i = c * kChunkVecs + j * 32;
                v[j] = make_uint4(kNegInf2, kNegInf2, kNegInf2, kNegInf2);
                if (kFull || i + lane < count) v[j] = mine[i];
            }
            accumulate(v, m, s);
        }
        warp_combine(m, s);

        if (lane < kCluster) store_remote(&pairs[parity][unit], lane, m, s);
        __syncwarp();
        cluster_arrive();
        cluster_wait();
        row_combine(pairs[parity], lane, m, s);
        const float inverse = 1.0f / s;

        const bool more = row + clusters < rows;
        src += step;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
#pragma unroll
            for (int j = 0; j < kPerLane; ++j) {
                const int i = c * kChunkVecs + j * 32;
                if (kFull || i + lane < count) {
                    const uint4 v = mine[i];
                    dst[i] = normalise(v, m, inverse);
                }
            }
            // The values of this chunk have been read and used by this very lane: its slots take the next row.
            if (more) {
#pragma unroll
                for (int j = 0; j < kPerLane; ++j) {
                    const int i = c * kChunkVecs + j * 32;
                    if (kFull || i + lane < count) copy_async(mine + i, src + i, policy);
                }
            }
            copy_commit();
        }
        dst += step;
    }
    copy_wait<0>();
}

// Any other row length or alignment: blocks loop over rows; online maximum and sum, then the write.
__global__ void softmax_any_kernel(scalar_t* output, const scalar_t* x, int64_t rows, int64_t dim) {
    __shared__ float2 partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* in = x + row * dim;
        scalar_t* out = output + row * dim;
        float m = kLowest, s = 0.0f;
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
            const float v = to_float(in[i]);
            const float scaled = v * kLog2e;
            if (scaled > m) {
                s *= ex2(m - scaled);
                m = scaled;
            }
            s += ex2(fmaf(v, kLog2e, -m));
        }
        warp_combine(m, s);
        if (lane == 0) partial[warp] = make_float2(m, s);
        __syncthreads();
        const float2 mine = lane < warps ? partial[lane] : make_float2(kLowest, 0.0f);
        m = mine.x;
        s = mine.y;
        warp_combine(m, s);
        const float inverse = 1.0f / s;
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
            out[i] = from_float(ex2(fmaf(to_float(in[i]), kLog2e, -m)) * inverse);
        }
        __syncthreads();
    }
}

void launch_any(scalar_t* output, const scalar_t* x, int64_t rows, int64_t dim) {
    const int threads = dim >= 8192 ? 1024 : 256;
    const int64_t most = 132 * 8;
    const int64_t blocks = rows < most ? rows : most;
    softmax_any_kernel<<<static_cast<unsigned>(blocks), threads>>>(output, x, rows, dim);
    check(cudaGetLastError());
}

template <bool kFull>
void launch_cluster(__half* output, const __half* x, int64_t rows, int64_t dim, int slice) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(kCluster));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = kDataBytes;
    config.stream = 0;
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = kCluster;
    attribute[0].val.clusterDim.y = 1;
    attribute[0].val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    static int64_t resident = 0;  // clusters that the GPU holds at a time
    if (resident == 0) {
        check(cudaFuncSetAttribute(softmax_cluster_kernel<kFull>, cudaFuncAttributeMaxDynamicSharedMemorySize, kDataBytes));
        int found = 0;
        check(cudaOccupancyMaxActiveClusters(&found, softmax_cluster_kernel<kFull>, &config));
        resident = found > 0 ? found : 32;
    }
    const int64_t rounds = (rows + resident - 1) / resident;
    const int64_t clusters = (rows + rounds - 1) / rounds;
    config.gridDim = dim3(static_cast<unsigned>(clusters * kCluster));
    check(cudaLaunchKernelEx(&config, softmax_cluster_kernel<kFull>, output, x, rows, dim, slice));
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (batch_size <= 0 || dim <= 0) return;
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* in = static_cast<const scalar_t*>(x);
    const bool aligned = (reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(x)) % 16 == 0 && dim % 8 == 0;
    const int64_t vecs = dim / 8;
    if (aligned && dim >= 65536 && vecs <= kMaxVecs && batch_size <= (int64_t{1} << 27)) {
        const int slice = static_cast<int>((vecs + kUnits - 1) / kUnits);
        if (vecs == kMaxVecs) launch_cluster<true>(out, in, batch_size, dim, slice);
        else launch_cluster<false>(out, in, batch_size, dim, slice);
    } else {
        launch_any(out, in, batch_size, dim);
    }
}
