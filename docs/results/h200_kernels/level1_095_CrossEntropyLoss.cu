// KernelBlaster: level1/095, fp16, size medium
// measured speed-up over the start 3.940x (95 %: 3.914 to 3.952), 168.93 us -> 42.88 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// Cross entropy: one warp per row, 16 vector loads per lane in flight, one pass, one launch.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;
constexpr int BLOCKS_PER_SM = 4;
constexpr int CHUNKS = 2;      // pieces of a row, each refilled as soon as it is consumed
constexpr int CHUNK_VECS = 8;  // 16-byte loads per lane and piece
constexpr int ROW_VECS = 32 * CHUNKS * CHUNK_VECS;
constexpr int FAST_CLASSES = 8 * ROW_VECS;  // 4096
constexpr float NEG_INF = -INFINITY;
constexpr float LOG2E = 1.4426950408889634f;

// Back at zero after every call: atomicInc wraps at the last block.
__device__ unsigned int finished_blocks = 0;

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

__device__ __forceinline__ float exp_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * LOG2E));
    return y;
}

__device__ __forceinline__ uint4 load_vec(const uint4* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

__device__ __forceinline__ void load_chunk(uint4 (&v)[CHUNK_VECS], const uint4* p) {
#pragma unroll
    for (int i = 0; i < CHUNK_VECS; ++i) v[i] = load_vec(p + i * 32);
}

__device__ __forceinline__ __half2 as_half2(unsigned int bits) { return *reinterpret_cast<__half2*>(&bits); }

// A lane whose values are all -inf must not compute (-inf) - (-inf).
__device__ __forceinline__ float shift_of(float maximum) { return maximum == NEG_INF ? 0.0f : maximum; }

__device__ __forceinline__ void add_pair(float& s0, float& s1, unsigned int bits, float shift) {
    const float2 f = __half22float2(as_half2(bits));
    s0 += exp_fast(f.x - shift);
    s1 += exp_fast(f.y - shift);
}

// Online softmax of this lane: (maximum, sum) takes in one more piece.
__device__ __forceinline__ void consume(const uint4 (&v)[CHUNK_VECS], float& maximum, float& sum) {
    __half2 h0 = __hmax2(as_half2(v[0].x), as_half2(v[0].y));
    __half2 h1 = __hmax2(as_half2(v[0].z), as_half2(v[0].w));
#pragma unroll
    for (int i = 1; i < CHUNK_VECS; ++i) {
        h0 = __hmax2(h0, __hmax2(as_half2(v[i].x), as_half2(v[i].y)));
        h1 = __hmax2(h1, __hmax2(as_half2(v[i].z), as_half2(v[i].w)));
    }
    const float2 m2 = __half22float2(__hmax2(h0, h1));
    const float larger = fmaxf(maximum, fmaxf(m2.x, m2.y));
    const float shift = shift_of(larger);
    float s0 = sum * exp_fast(maximum - shift), s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int i = 0; i < CHUNK_VECS; ++i) {
        add_pair(s0, s1, v[i].x, shift);
        add_pair(s2, s3, v[i].y, shift);
        add_pair(s0, s1, v[i].z, shift);
        add_pair(s2, s3, v[i].w, shift);
    }
    maximum = larger;
    sum = (s0 + s1) + (s2 + s3);
}

// Adds up the losses of the block's warps; the last block to arrive averages all blocks, in a fixed order.
__device__ __forceinline__ void finish(float loss, float* partials, scalar_t* output, int64_t rows) {
    __shared__ float shared[WARPS];
    __shared__ bool last;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) shared[warp] = loss;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) sum += shared[i];
        __stcg(partials + blockIdx.x, sum);
        __threadfence();
        last = atomicInc(&finished_blocks, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;  // the same for the whole block
    __threadfence();
    float sum = 0.0f;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += THREADS) sum += __ldcg(partials + i);
    sum = warp_sum(sum);
    if (lane == 0) shared[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) sum += shared[i];
        *output = from_float(sum / static_cast<float>(rows));
    }
}

// Rows of exactly FAST_CLASSES classes, one warp each; the next row's loads go out while this row is summed.
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) loss_kernel(
    scalar_t* output, float* partials, const scalar_t* predictions, const int64_t* targets, int64_t rows) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * WARPS;
    const uint4* vectors = reinterpret_cast<const uint4*>(predictions) + lane;

    int64_t row = static_cast<int64_t>(warp) * gridDim.x + blockIdx.x;
    uint4 v[CHUNKS][CHUNK_VECS] = {};
    int64_t target = 0;
    if (row < rows) {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) load_chunk(v[c], vectors + row * ROW_VECS + c * CHUNK_VECS * 32);
        target = __ldg(targets + row);
    }

    float loss = 0.0f;
    while (row < rows) {  // the same for the whole warp
        const float logit = to_float(predictions[row * FAST_CLASSES + target]);
        const int64_t next = row + stride;
        const bool more = next < rows;
        const uint4* next_vectors = vectors + next * ROW_VECS;
        float maximum = NEG_INF, sum = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            consume(v[c], maximum, sum);
            if (more) load_chunk(v[c], next_vectors + c * CHUNK_VECS * 32);
        }
        if (more) target = __ldg(targets + next);

        const float shift = shift_of(warp_max(maximum));
        sum = warp_sum(sum * exp_fast(maximum - shift));
        loss += logf(sum) + shift - logit;
        row = next;
    }
    finish(loss, partials, output, rows);
}

// Any number of classes, any alignment: one warp per row, two passes, four loads in flight.
__global__ void __launch_bounds__(THREADS) loss_any_kernel(
    scalar_t* output, float* partials, const scalar_t* predictions, const int64_t* targets, int64_t rows,
    int64_t classes) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * WARPS;
    float loss = 0.0f;
    for (int64_t row = static_cast<int64_t>(warp) * gridDim.x + blockIdx.x; row < rows; row += stride) {
        const scalar_t* data = predictions + row * classes;
        float m[4] = {NEG_INF, NEG_INF, NEG_INF, NEG_INF};
        for (int64_t i = lane; i < classes; i += 128) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int64_t k = i + 32 * j;
                m[j] = fmaxf(m[j], k < classes ? to_float(data[k]) : NEG_INF);
            }
        }
        const float shift = shift_of(warp_max(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3]))));
        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int64_t i = lane; i < classes; i += 128) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int64_t k = i + 32 * j;
                s[j] += exp_fast((k < classes ? to_float(data[k]) : NEG_INF) - shift);
            }
        }
        const float sum = warp_sum((s[0] + s[1]) + (s[2] + s[3]));
        loss += logf(sum) + shift - to_float(data[targets[row]]);
    }
    finish(loss, partials, output, rows);
}

// Grown on demand and kept, so that later calls allocate nothing.
static float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

static int multiprocessors() {
    static int count = 0;
    if (count == 0) {
        int device = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    }
    return count;
}

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    const int64_t limit = static_cast<int64_t>(multiprocessors()) * BLOCKS_PER_SM;
    int64_t blocks = (batch_size + WARPS - 1) / WARPS;
    if (blocks > limit) blocks = limit;
    if (blocks < 1) blocks = 1;
    float* partials = workspace(limit);
    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* data = static_cast<const scalar_t*>(predictions);
    const int64_t* labels = static_cast<const int64_t*>(targets);
    const bool aligned = reinterpret_cast<uintptr_t>(predictions) % 16 == 0;
    if (num_classes == FAST_CLASSES && aligned) {
        loss_kernel<<<static_cast<unsigned int>(blocks), THREADS>>>(out, partials, data, labels, batch_size);
    } else {
        loss_any_kernel<<<static_cast<unsigned int>(blocks), THREADS>>>(
            out, partials, data, labels, batch_size, num_classes);
    }
    check(cudaGetLastError());
}
