// problem: level1/95
// precision: fp16
// kind: honest
// expects: accepted. One kernel; a warp per sample with online softmax, the last block to finish (atomicInc that wraps to
//          zero by itself) averages with Kahan sums; also honours torch's default ignore_index of -100.
// size: small

// Cross entropy (fp16 scores, int64 targets) in one kernel.
#include <kernelblaster/scalar.cuh>

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

static_assert(std::is_same<scalar_t, __half>::value, "this file is the fp16 variant");

namespace cg = cooperative_groups;

namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int PACK = 8;
constexpr int64_t IGNORED = -100;  // torch.nn.functional.cross_entropy's default

// Counts the blocks that are done. atomicInc wraps it to zero with the last one, so that it is zero between launches.
__device__ unsigned int finished_blocks = 0;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Compensated sum. An infinity leaves no compensation behind, which would be inf - inf.
struct Kahan {
    float sum = 0.0f, lost = 0.0f;
    __device__ __forceinline__ void add(float value) {
        const float y = __fsub_rn(value, lost);
        const float t = __fadd_rn(sum, y);
        lost = isinf(t) ? 0.0f : __fsub_rn(__fsub_rn(t, sum), y);
        sum = t;
    }
};

// log(sum(exp(row))) - row[target], for a whole warp; all lanes receive it.
template <class Warp>
__device__ __forceinline__ float sample_loss(const Warp& warp, const __half* row, int64_t classes,
                                             int64_t target) {
    const int lane = static_cast<int>(warp.thread_rank());
    const unsigned skew = reinterpret_cast<uintptr_t>(row) % 16 / sizeof(__half);
    int64_t head = skew == 0 ? 0 : PACK - skew;
    if (head > classes) head = classes;
    const int64_t packs = (classes - head) / PACK;
    const int64_t tail = head + packs * PACK;

    float maximum = -INFINITY, sum = 0.0f;
    const auto raise = [&](float candidate) {
        if (candidate > maximum) {
            sum *= __expf(maximum - candidate);
            maximum = candidate;
        }
    };
    const auto add = [&](float value) {
        raise(value);
        if (maximum > -INFINITY) sum += __expf(value - maximum);
    };

    if (lane < head) add(__half2float(row[lane]));  // fewer than eight elements on either side
    const uint4* row_packs = reinterpret_cast<const uint4*>(row + head);
    for (int64_t i = lane; i < packs; i += 32) {
        const uint4 words = __ldg(row_packs + i);
        const __half2* pairs = reinterpret_cast<const __half2*>(&words);
        const __half2 top = __hmax2(__hmax2(pairs[0], pairs[1]), __hmax2(pairs[2], pairs[3]));
        raise(fmaxf(__low2float(top), __high2float(top)));
        if (maximum == -INFINITY) continue;
        float part[PACK];
#pragma unroll
        for (int j = 0; j < PACK / 2; ++j) {
            const float2 v = __half22float2(pairs[j]);
            part[2 * j] = __expf(v.x - maximum);
            part[2 * j + 1] = __expf(v.y - maximum);
        }
        sum += ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    if (lane < classes - tail) add(__half2float(row[tail + lane]));

    const float top = cg::reduce(warp, maximum, cg::greater<float>());
    const float scaled = maximum > -INFINITY ? sum * __expf(maximum - top) : 0.0f;
    const float total = cg::reduce(warp, scaled, cg::plus<float>());
    // The two large terms first: their difference is nearly exact.
    return (top - __half2float(row[target])) + logf(total);
}

__global__ void __launch_bounds__(THREADS)
cross_entropy_kernel(__half* output, float2* partials, const __half* predictions, const int64_t* targets,
                     int64_t batch_size, int64_t classes) {
    __shared__ float2 shared[THREADS];
    __shared__ bool is_last;
    const cg::thread_block block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const int t = threadIdx.x;

    Kahan loss;
    float samples = 0.0f;  // below 2^24 for each warp
    const int64_t warps = static_cast<int64_t>(gridDim.x) * WARPS;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * WARPS + t / 32; i < batch_size; i += warps) {
        const int64_t target = targets[i];
        if (target == IGNORED) continue;
        loss.add(sample_loss(warp, predictions + i * classes, classes, target));
        samples += 1.0f;
    }
    if (warp.thread_rank() == 0) shared[t / 32] = make_float2(loss.sum, samples);
    block.sync();
    if (t == 0) {
        Kahan block_loss;
        float block_samples = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            block_loss.add(shared[w].x);
            block_samples += shared[w].y;
        }
        partials[blockIdx.x] = make_float2(block_loss.sum, block_samples);
        __threadfence();
        is_last = atomicInc(&finished_blocks, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    block.sync();
    if (!is_last) return;

    Kahan rest;
    float rest_samples = 0.0f;
    for (unsigned i = t; i < gridDim.x; i += THREADS) {
        const float2 partial = __ldcg(partials + i);
        rest.add(partial.x);
        rest_samples += partial.y;
    }
    shared[t] = make_float2(rest.sum, rest_samples);
    block.sync();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            shared[t].x += shared[t + half].x;
            shared[t].y += shared[t + half].y;
        }
        block.sync();
    }
    if (t == 0) *output = __float2half_rn(shared[0].x / shared[0].y);
}

// Grown on demand and kept, so that later calls allocate nothing.
float2* workspace(int64_t count) {
    static float2* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float2)));
        capacity = count;
    }
    return buffer;
}

int multiprocessors() {
    static const int count = [] {
        int device = 0, value = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device));
        return value;
    }();
    return count;
}

}  // namespace

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    const int64_t wanted = std::max<int64_t>(1, (batch_size + WARPS - 1) / WARPS);
    const int64_t blocks = std::min<int64_t>(wanted, 8 * multiprocessors());
    cross_entropy_kernel<<<static_cast<unsigned>(blocks), THREADS>>>(
        static_cast<__half*>(output), workspace(blocks), static_cast<const __half*>(predictions),
        static_cast<const int64_t*>(targets), batch_size, num_classes);
    check(cudaGetLastError());
}
