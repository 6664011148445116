// problem: level2/62
// precision: fp16
// kind: honest
// expects: split-K product (wmma or FFMA, cuda::pipeline, fp32 atomic_ref sums) and a Welford group norm on cooperative
//          tiles; memset and both kernels are nodes of a CUDA graph that is built, launched and destroyed in every call
// size: small
#include <kernelblaster/scalar.cuh>

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/pipeline>
#include <mma.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace cg = cooperative_groups;
namespace {
constexpr int BM = 64, BN = 64, BK = 32, THREADS = 128, VECTOR = 16 / sizeof(scalar_t), LD = BK + VECTOR, LDC = BN + 4;

struct Stage { scalar_t a[BM][LD], b[BN][LD]; };
constexpr size_t SHARED = std::max(2 * sizeof(Stage), sizeof(float) * BM * LDC);

void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

// Rows row0.. of a (rows, inner) matrix, columns k0.. below k_end; zeros elsewhere.
template <typename Pipe>
__device__ void load_tile(scalar_t (&tile)[64][LD], const scalar_t* source, int64_t row0, int64_t rows, int64_t inner,
                          int64_t k0, int64_t k_end, Pipe& pipe) {
    for (int chunk = threadIdx.x; chunk < 64 * BK / VECTOR; chunk += THREADS) {
        const int r = chunk / (BK / VECTOR), c = chunk % (BK / VECTOR) * VECTOR;
        const int64_t row = row0 + r, k = k0 + c;
        if (row < rows && k + VECTOR <= k_end && inner % VECTOR == 0) {
            cuda::memcpy_async(&tile[r][c], source + row * inner + k, cuda::aligned_size_t<16>(16), pipe);
        } else {
            for (int i = 0; i < VECTOR; ++i) {
                tile[r][c + i] = row < rows && k + i < k_end ? source[row * inner + k + i] : from_float(0.0f);
            }
        }
    }
}

// Sums of one 64 x 64 tile, in whatever shape the type is multiplied in.
template <typename T>
struct Accumulator {
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c[4];
    const int m = threadIdx.x / 64 * 32, n = threadIdx.x / 32 % 2 * 32;  // where the 32 x 32 sums of this warp begin
    __device__ Accumulator() {
        for (int i = 0; i < 4; ++i) nvcuda::wmma::fill_fragment(c[i], 0.0f);
    }
    __device__ void add(const Stage& s) {
        using namespace nvcuda;
        for (int k = 0; k < BK; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b[2];
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(a[i], &s.a[m + 16 * i][k], LD);
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(b[i], &s.b[n + 16 * i][k], LD);
            for (int i = 0; i < 4; ++i) wmma::mma_sync(c[i], a[i / 2], b[i % 2], c[i]);
        }
    }
    __device__ void store(float* tile) const {
        constexpr auto layout = nvcuda::wmma::mem_row_major;
        for (int i = 0; i < 4; ++i) store_matrix_sync(tile + (m + i / 2 * 16) * LDC + n + i % 2 * 16, c[i], LDC, layout);
    }
};

template <>
struct Accumulator<float> {
    float c[32] = {};
    const int m = threadIdx.x / 16, n = threadIdx.x % 16;  // rows m + 8 i, columns n + 16 j
    __device__ void add(const Stage& s) {
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < 32; ++i) c[i] += to_float(s.a[m + i / 4 * 8][k]) * to_float(s.b[n + i % 4 * 16][k]);
        }
    }
    __device__ void store(float* tile) const {
#pragma unroll
        for (int i = 0; i < 32; ++i) tile[(m + i / 4 * 8) * LDC + n + i % 4 * 16] = c[i];
    }
};

// y += x weight^T over the share of `inner` that blockIdx.y has.
__global__ void __launch_bounds__(THREADS) product(float* y, const scalar_t* x, const scalar_t* weight, int64_t rows,
                                                   int64_t columns, int64_t inner, int64_t share) {
    __shared__ alignas(128) unsigned char shared[SHARED];
    auto* const stages = reinterpret_cast<Stage*>(shared);
    const int64_t across = (columns + BN - 1) / BN, row0 = blockIdx.x / across * BM, column0 = blockIdx.x % across * BN;
    const int64_t first = blockIdx.y * share, last = first + share < inner ? first + share : inner;
    auto pipe = cuda::make_pipeline();
    const auto fetch = [&](int64_t k, int stage) {
        pipe.producer_acquire();
        load_tile(stages[stage].a, x, row0, rows, inner, k, last, pipe);
        load_tile(stages[stage].b, weight, column0, columns, inner, k, last, pipe);
        pipe.producer_commit();
    };
    Accumulator<scalar_t> sums;
    fetch(first, 0);
    int stage = 0;
    for (int64_t k = first; k < last; k += BK, stage ^= 1) {
        pipe.consumer_wait();
        __syncthreads();  // this stage is complete, and nobody reads the other one any more
        pipe.consumer_release();
        if (k + BK < last) fetch(k + BK, stage ^ 1);
        sums.add(stages[stage]);
    }
    __syncthreads();
    auto* const tile = reinterpret_cast<float*>(shared);
    sums.store(tile);
    __syncthreads();
    for (int e = threadIdx.x; e < BM * BN; e += THREADS) {
        const int64_t row = row0 + e / BN, column = column0 + e % BN;
        if (row >= rows || column >= columns) continue;
        const cuda::atomic_ref<float, cuda::thread_scope_device> place(y[row * columns + column]);
        place.fetch_add(tile[e / BN * LDC + e % BN], cuda::std::memory_order_relaxed);
    }
}

// One cooperative tile per row and group: Welford's statistics per lane, merged as Chan does, then the values.
template <int Lanes>
__global__ void normalise(scalar_t* output, const float* y, const scalar_t* bias, const scalar_t* gamma,
                          const scalar_t* beta, int64_t rows, int64_t columns, int64_t groups, float eps, float slope) {
    const auto tile = cg::tiled_partition<Lanes>(cg::this_thread_block());
    const int64_t line = static_cast<int64_t>(blockIdx.x) * tile.meta_group_size() + tile.meta_group_rank();
    if (line >= rows * groups) return;
    const int64_t per = columns / groups, channel0 = line % groups * per, base = line / groups * columns;
    const auto value = [&](int64_t i) { return y[base + channel0 + i] + to_float(bias[channel0 + i]); };
    float count = 0.0f, mean = 0.0f, squares = 0.0f;
    for (int64_t i = tile.thread_rank(); i < per; i += Lanes) {
        const float v = value(i), delta = v - mean;
        mean += delta / (count += 1.0f);
        squares += delta * (v - mean);
    }
    for (int mask = Lanes / 2; mask > 0; mask /= 2) {
        const float n = tile.shfl_xor(count, mask), m = tile.shfl_xor(mean, mask), q = tile.shfl_xor(squares, mask);
        const float total = count + n, delta = m - mean;
        if (n == 0.0f) continue;
        mean = count > 0.0f ? mean + delta * (n / total) : m;
        squares = count > 0.0f ? squares + q + delta * delta * (count * n / total) : q;
        count = total;
    }
    mean = tile.shfl(mean, 0);
    const float scale = rsqrtf(tile.shfl(squares, 0) / per + eps);
    for (int64_t i = tile.thread_rank(); i < per; i += Lanes) {
        const float v = (value(i) - mean) * scale * to_float(gamma[channel0 + i]) + to_float(beta[channel0 + i]);
        output[base + channel0 + i] = from_float(2.0f * (v > 0.0f ? v : slope * v));
    }
}

template <typename... P>
cudaGraphNode_t add(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after, void (*kernel)(P...), dim3 grid,
                    unsigned threads, std::type_identity_t<P>... arguments) {
    void* pointers[] = {&arguments...};
    const cudaKernelNodeParams params{reinterpret_cast<void*>(kernel), grid, dim3(threads), 0, pointers, nullptr};
    cudaGraphNode_t node;
    require(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
}
}  // namespace

void launch_gpu_implementation(void* output, void* x, void* fc_weight, void* fc_bias, void* gn_weight,
                               void* gn_bias, int64_t batch_size, int64_t in_features, int64_t out_features,
                               int64_t num_groups, float eps, float negative_slope) {
    const auto in = [](void* tensor) { return static_cast<const scalar_t*>(tensor); };
    const auto parts = [](int64_t extent, int64_t part) { return (extent + part - 1) / part; };
    const size_t sums = batch_size * out_features;
    float* y = nullptr;
    require(cudaMallocAsync(&y, sums * sizeof(float), cudaStream_t{}));
    int device = 0, processors = 0, resident = 0;
    require(cudaGetDevice(&device));
    require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, product, THREADS, 0));
    const int64_t tiles = parts(batch_size, BM) * parts(out_features, BN), steps = parts(in_features, BK);
    const int64_t wanted = std::clamp<int64_t>(int64_t{processors} * resident / tiles, 1, std::min<int64_t>(16, steps));
    const int64_t share = parts(steps, wanted) * BK, splits = parts(in_features, share);
    cudaGraph_t graph;
    require(cudaGraphCreate(&graph, 0));
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> owned(graph, &cudaGraphDestroy);
    const cudaMemsetParams zero{y, 0, 0, sizeof(float), sums, 1};
    cudaGraphNode_t zeroed;
    require(cudaGraphAddMemsetNode(&zeroed, graph, nullptr, 0, &zero));
    const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(splits));
    const auto multiplied = add(graph, {zeroed}, product, grid, THREADS, y, in(x), in(fc_weight), batch_size,
                                out_features, in_features, share);
    const int lanes = out_features / num_groups <= 16 ? 16 : 32;
    const auto norm = lanes == 16 ? normalise<16> : normalise<32>;
    add(graph, {multiplied}, norm, static_cast<unsigned>(parts(batch_size * num_groups, 256 / lanes)), 256,
        static_cast<scalar_t*>(output), y, in(fc_bias), in(gn_weight), in(gn_bias), batch_size, out_features, num_groups,
        eps, negative_slope);
    cudaGraphExec_t executable;
    require(cudaGraphInstantiate(&executable, graph, 0));
    require(cudaGraphLaunch(executable, cudaStream_t{}));
    require(cudaGraphExecDestroy(executable));  // freed once it has run
    require(cudaFreeAsync(y, cudaStream_t{}));
}
