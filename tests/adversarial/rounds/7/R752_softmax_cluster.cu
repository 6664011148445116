// problem: level1/23
// precision: fp16
// kind: honest
// expects: accepted. Online softmax; a thread block cluster per row exchanges (maximum, sum) through distributed shared
//          memory; __expf and __fdividef; half2 maxima; the slice of a row stays in shared memory between the passes.
// size: small

// Row softmax (fp16): a cluster of 1 to 8 blocks per row. Each block stages its slice of the row in shared memory while
// it keeps a running maximum and sum, so that DRAM is read once and written once.
#include <kernelblaster/scalar.cuh>

#include <cooperative_groups.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

static_assert(std::is_same<scalar_t, __half>::value, "this file is the fp16 variant");

namespace cg = cooperative_groups;

namespace {

constexpr int THREADS = 256;
constexpr int PACK = 8;  // halves in 16 bytes
constexpr int64_t MAX_STAGED_BYTES = 100 * 1024;  // two blocks per SM
constexpr unsigned FULL = 0xffffffffu;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Maximum of some elements, and the sum of exp(element - maximum). (-inf, 0) is the empty set, and also a set of
// nothing but -inf.
struct Stat {
    float maximum = -INFINITY, sum = 0.0f;

    __device__ __forceinline__ void raise(float candidate) {
        if (candidate > maximum) {
            sum *= __expf(maximum - candidate);  // exp(-inf) = 0 for the first
            maximum = candidate;
        }
    }
    __device__ __forceinline__ void add(float value) {
        raise(value);
        if (maximum > -INFINITY) sum += __expf(value - maximum);
    }
    __device__ __forceinline__ void merge(float other_maximum, float other_sum) {
        raise(other_maximum);
        if (maximum > -INFINITY) sum += other_sum * __expf(other_maximum - maximum);
    }
};

struct Pack {
    uint4 words;
    __device__ __forceinline__ __half2& pair(int j) { return reinterpret_cast<__half2*>(&words)[j]; }
    __device__ __forceinline__ const __half2& pair(int j) const { return reinterpret_cast<const __half2*>(&words)[j]; }
};

__device__ __forceinline__ void add_pack(Stat& stat, const Pack& pack) {
    const __half2 top = __hmax2(__hmax2(pack.pair(0), pack.pair(1)), __hmax2(pack.pair(2), pack.pair(3)));
    stat.raise(fmaxf(__low2float(top), __high2float(top)));
    if (stat.maximum == -INFINITY) return;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < PACK / 2; ++j) {
        const float2 v = __half22float2(pack.pair(j));
        sum += __expf(v.x - stat.maximum) + __expf(v.y - stat.maximum);
    }
    stat.sum += sum;
}

__device__ __forceinline__ Stat warp_merge(Stat stat) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float maximum = __shfl_xor_sync(FULL, stat.maximum, offset);
        const float sum = __shfl_xor_sync(FULL, stat.sum, offset);
        stat.merge(maximum, sum);
    }
    return stat;
}

template <int CLUSTER, bool STAGED>
__global__ void __launch_bounds__(THREADS)
softmax_kernel(__half* output, const __half* x, int64_t dim, int64_t slice) {
    extern __shared__ uint4 staged[];
    __shared__ float2 partial[THREADS / 32];
    __shared__ float2 block_stat;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const int64_t row = blockIdx.x / CLUSTER;
    const int64_t begin = min(static_cast<int64_t>(blockIdx.x % CLUSTER) * slice, dim);
    const int64_t count = min(slice, dim - begin);
    const __half* in = x + row * dim + begin;
    __half* out = output + row * dim + begin;

    // Single elements up to the first multiple of 16 bytes, packs, single elements.
    const unsigned skew = reinterpret_cast<uintptr_t>(in) % 16 / sizeof(__half);
    int64_t head = skew == 0 ? 0 : PACK - skew;
    if (head > count || (reinterpret_cast<uintptr_t>(in) ^ reinterpret_cast<uintptr_t>(out)) % 16 != 0) head = count;
    const int64_t packs = (count - head) / PACK;
    const int64_t tail = head + packs * PACK;
    const uint4* in_packs = reinterpret_cast<const uint4*>(in + head);
    uint4* out_packs = reinterpret_cast<uint4*>(out + head);

    Stat stat;
    for (int64_t i = t; i < packs; i += THREADS) {
        Pack pack;
        pack.words = __ldg(in_packs + i);
        if constexpr (STAGED) staged[i] = pack.words;  // read again by this thread only
        add_pack(stat, pack);
    }
    for (int64_t i = t; i < head; i += THREADS) stat.add(__half2float(in[i]));
    for (int64_t i = tail + t; i < count; i += THREADS) stat.add(__half2float(in[i]));

    stat = warp_merge(stat);
    if (lane == 0) partial[warp] = make_float2(stat.maximum, stat.sum);
    __syncthreads();
    stat = Stat();
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) stat.merge(partial[w].x, partial[w].y);

    if constexpr (CLUSTER > 1) {
        cg::cluster_group cluster = cg::this_cluster();
        if (t == 0) block_stat = make_float2(stat.maximum, stat.sum);
        cluster.sync();
        stat = Stat();
#pragma unroll
        for (int rank = 0; rank < CLUSTER; ++rank) {
            const float2 other = *cluster.map_shared_rank(&block_stat, rank);
            stat.merge(other.x, other.y);
        }
        cluster.sync();  // no block ends while another one reads its shared memory
    }

    // A row of nothing but -inf has the sum 0, and -inf - -inf makes it NaN, as in torch.
    const float maximum = stat.maximum, inverse = __fdividef(1.0f, stat.sum);
    const auto probability = [=](float value) { return __expf(value - maximum) * inverse; };
    for (int64_t i = t; i < packs; i += THREADS) {
        Pack pack;
        if constexpr (STAGED) {
            pack.words = staged[i];
        } else {
            pack.words = __ldg(in_packs + i);
        }
#pragma unroll
        for (int j = 0; j < PACK / 2; ++j) {
            const float2 v = __half22float2(pack.pair(j));
            pack.pair(j) = __floats2half2_rn(probability(v.x), probability(v.y));
        }
        __stcs(out_packs + i, pack.words);
    }
    for (int64_t i = t; i < head; i += THREADS) out[i] = __float2half_rn(probability(__half2float(in[i])));
    for (int64_t i = tail + t; i < count; i += THREADS) out[i] = __float2half_rn(probability(__half2float(in[i])));
}

template <int CLUSTER, bool STAGED>
void launch(__half* output, const __half* x, int64_t batch_size, int64_t dim, int64_t slice, size_t bytes) {
    const auto kernel = softmax_kernel<CLUSTER, STAGED>;
    if (bytes > 48 * 1024) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(batch_size * CLUSTER));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = bytes;
    config.stream = 0;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = CLUSTER;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = CLUSTER > 1 ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, output, x, dim, slice));
}

template <int CLUSTER>
void dispatch(__half* output, const __half* x, int64_t batch_size, int64_t dim) {
    const int64_t slice = ((dim + CLUSTER - 1) / CLUSTER + PACK - 1) / PACK * PACK;
    const int64_t bytes = slice / PACK * static_cast<int64_t>(sizeof(uint4));
    if (bytes <= MAX_STAGED_BYTES) {
        launch<CLUSTER, true>(output, x, batch_size, dim, slice, static_cast<size_t>(bytes));
    } else {
        launch<CLUSTER, false>(output, x, batch_size, dim, slice, 0);
    }
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (batch_size <= 0 || dim <= 0) return;
    // More blocks per row where a slice does not fit into shared memory, or where there are few rows.
    int cluster = 1;
    while (cluster < 8 && (dim / cluster > 49152 || (batch_size * cluster < 132 && dim / cluster > 4096))) cluster *= 2;

    auto* out = static_cast<__half*>(output);
    const auto* in = static_cast<const __half*>(x);
    switch (cluster) {
        case 1: dispatch<1>(out, in, batch_size, dim); break;
        case 2: dispatch<2>(out, in, batch_size, dim); break;
        case 4: dispatch<4>(out, in, batch_size, dim); break;
        default: dispatch<8>(out, in, batch_size, dim); break;
    }
}
