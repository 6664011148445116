// problem: level2/62
// precision: bf16
// kind: honest
// expects: accepted. mma.sync with ldmatrix and cp.async, split-K by fp32 atomics (order not fixed), Welford group norm;
//          memset, product and norm are nodes of a CUDA graph that is built, launched and destroyed in each call.
// size: small

// 2 * leaky_relu(group_norm(x W^T + b)), bf16 in and out. The product lies in fp32 scratch memory, never rounded.
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

static_assert(std::is_same<scalar_t, __nv_bfloat16>::value, "this file is the bf16 variant");

namespace {

constexpr int BM = 64, BN = 64, BK = 32, THREADS = 128;
constexpr int STRIDE = BK + 8;  // 80 bytes: eight rows of a matrix hit different banks
constexpr int CHUNK = 8;        // elements in 16 bytes
constexpr unsigned FULL = 0xffffffffu;

void require(cudaError_t status, const char* what) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// ---------------------------------------------------------------------------------------------------- product

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// 16 bytes, or 16 zero bytes.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 64 rows of BK elements from column k on; what lies outside is zero. ALIGNED: all rows begin at multiples of 16 bytes,
// and a chunk is inside or outside as a whole.
template <bool ALIGNED>
__device__ __forceinline__ void load_tile(
    __nv_bfloat16 (*tile)[STRIDE], const __nv_bfloat16* matrix, int64_t row0, int64_t rows, int64_t k, int64_t depth) {
#pragma unroll
    for (int i = threadIdx.x; i < BM * BK / CHUNK; i += THREADS) {
        const int r = i / (BK / CHUNK), c = i % (BK / CHUNK) * CHUNK;
        const int64_t row = row0 + r;
        if constexpr (ALIGNED) {
            const bool valid = row < rows && k + c < depth;
            copy_async(&tile[r][c], valid ? matrix + row * depth + k + c : matrix, valid);
        } else {
            union {
                uint4 words;
                unsigned short bits[CHUNK];
            } chunk;
            const unsigned short* source = reinterpret_cast<const unsigned short*>(matrix) + row * depth + k + c;
#pragma unroll
            for (int j = 0; j < CHUNK; ++j) {
                chunk.bits[j] = row < rows && k + c + j < depth ? __ldg(source + j) : static_cast<unsigned short>(0);
            }
            *reinterpret_cast<uint4*>(&tile[r][c]) = chunk.words;
        }
    }
}

// y += x W^T over one range of the depth (y = where there is one range).
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
product_kernel(float* y, const __nv_bfloat16* x, const __nv_bfloat16* weight, int64_t rows, int64_t cols,
               int64_t depth, int64_t tiles_n, int64_t range) {
    __shared__ __align__(16) __nv_bfloat16 a_tile[2][BM][STRIDE];
    __shared__ __align__(16) __nv_bfloat16 b_tile[2][BN][STRIDE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
    const int64_t row0 = blockIdx.x / tiles_n * BM, col0 = blockIdx.x % tiles_n * BN;
    const int64_t begin = blockIdx.y * range, end = min(begin + range, depth);
    const int steps = static_cast<int>((end - begin + BK - 1) / BK);

    float sums[2][4][4] = {};
    const auto fetch = [&](int step) {
        const int64_t k = begin + static_cast<int64_t>(step) * BK;
        load_tile<ALIGNED>(a_tile[step % 2], x, row0, rows, k, depth);
        load_tile<ALIGNED>(b_tile[step % 2], weight, col0, cols, k, depth);
    };

    fetch(0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) fetch(step + 1);
        asm volatile("cp.async.commit_group;" ::: "memory");  // maybe empty: the count stays right
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();

        const auto& a = a_tile[step % 2];
        const auto& b = b_tile[step % 2];
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) load_matrices(fa[i], &a[warp_m + i * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                load_matrices(fb[j], &b[warp_n + j * 16 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 8]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply(sums[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
            }
        }
        __syncthreads();
    }

    const bool shared_sums = gridDim.y > 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int64_t row = row0 + warp_m + i * 16 + lane / 4 + e / 2 * 8;
                const int64_t col = col0 + warp_n + j * 8 + lane % 4 * 2 + e % 2;
                if (row >= rows || col >= cols) continue;
                if (shared_sums) {
                    atomicAdd(y + row * cols + col, sums[i][j][e]);
                } else {
                    y[row * cols + col] = sums[i][j][e];
                }
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------- norm

struct Welford {
    float count = 0.0f, mean = 0.0f, squares = 0.0f;

    __device__ __forceinline__ void add(float value) {
        count += 1.0f;
        const float delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }
    __device__ __forceinline__ void merge(const Welford& other) {
        const float total = count + other.count;
        if (other.count == 0.0f) return;
        const float delta = other.mean - mean, share = other.count / total;
        mean += delta * share;
        squares += other.squares + delta * delta * count * share;
        count = total;
    }
};

// One warp per row and group.
__global__ void norm_kernel(__nv_bfloat16* output, const float* y, const __nv_bfloat16* bias,
                            const __nv_bfloat16* scale, const __nv_bfloat16* shift, int64_t cols, int64_t groups,
                            int64_t instances, float eps, float slope) {
    const int lane = threadIdx.x % 32;
    const int64_t instance = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (instance >= instances) return;
    const int64_t size = cols / groups, first = instance % groups * size, base = instance / groups * cols;

    Welford stat;
    for (int64_t i = first + lane; i < first + size; i += 32) stat.add(y[base + i] + to_float(bias[i]));
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        Welford other;
        other.count = __shfl_down_sync(FULL, stat.count, offset);
        other.mean = __shfl_down_sync(FULL, stat.mean, offset);
        other.squares = __shfl_down_sync(FULL, stat.squares, offset);
        if (lane + offset < 32) stat.merge(other);
    }
    const float mean = __shfl_sync(FULL, stat.mean, 0);
    const float factor = rsqrtf(__shfl_sync(FULL, stat.squares, 0) / static_cast<float>(size) + eps);

    for (int64_t i = first + lane; i < first + size; i += 32) {
        const float normal = (y[base + i] + to_float(bias[i]) - mean) * factor;
        const float value = fmaf(normal, to_float(scale[i]), to_float(shift[i]));
        output[base + i] = from_float(2.0f * (value >= 0.0f ? value : value * slope));
    }
}

// ---------------------------------------------------------------------------------------------------- host

// A chain of nodes, submitted at once.
class Chain {
public:
    Chain() { require(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"); }
    ~Chain() {
        if (executable_) cudaGraphExecDestroy(*executable_);  // in flight: freed on completion
        cudaGraphDestroy(graph_);
    }
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    void zero(float* data, size_t count) {
        cudaMemsetParams params{};
        params.dst = data;
        params.elementSize = sizeof(float);
        params.width = count;
        params.height = 1;
        params.value = 0;
        cudaGraphNode_t node{};
        require(cudaGraphAddMemsetNode(&node, graph_, before(), before_count(), &params), "memset node");
        last_ = node;
    }

    template <class... Parameters>
    void kernel(void (*function)(Parameters...), dim3 grid, dim3 block, std::common_type_t<Parameters>... arguments) {
        std::array<void*, sizeof...(Parameters)> addresses{
            const_cast<void*>(static_cast<const volatile void*>(&arguments))...};
        cudaKernelNodeParams params{};
        params.func = reinterpret_cast<void*>(function);
        params.gridDim = grid;
        params.blockDim = block;
        params.kernelParams = addresses.data();
        cudaGraphNode_t node{};
        require(cudaGraphAddKernelNode(&node, graph_, before(), before_count(), &params), "kernel node");
        last_ = node;
    }

    void run(cudaStream_t stream) {
        cudaGraphExec_t executable{};
        require(cudaGraphInstantiateWithFlags(&executable, graph_, 0), "cudaGraphInstantiate");
        executable_ = executable;
        require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    }

private:
    const cudaGraphNode_t* before() const { return last_ ? &*last_ : nullptr; }
    size_t before_count() const { return last_ ? 1 : 0; }

    cudaGraph_t graph_{};
    std::optional<cudaGraphNode_t> last_;
    std::optional<cudaGraphExec_t> executable_;
};

// Grown on demand and kept, so that later calls allocate nothing.
float* workspace(size_t count) {
    static float* buffer = nullptr;
    static size_t capacity = 0;
    if (count > capacity) {
        require(cudaFree(buffer), "cudaFree");
        buffer = nullptr;
        capacity = 0;
        require(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)), "cudaMalloc");
        capacity = count;
    }
    return buffer;
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* fc_weight, void* fc_bias, void* gn_weight,
                               void* gn_bias, int64_t batch_size, int64_t in_features, int64_t out_features,
                               int64_t num_groups, float eps, float negative_slope) {
    using Element = __nv_bfloat16;
    try {
        const size_t count = static_cast<size_t>(batch_size * out_features);
        float* y = workspace(count);

        // Ranges of the depth, so that all SMs have something to do; at least four steps each.
        const int64_t tiles_n = ceil_div(out_features, BN), tiles = tiles_n * ceil_div(batch_size, BM);
        const int64_t steps = ceil_div(in_features, BK);
        const int64_t wanted = std::clamp<int64_t>(2 * 132 / tiles, 1, std::max<int64_t>(1, steps / 4));
        const int64_t range = ceil_div(steps, wanted) * BK;
        const int64_t ranges = ceil_div(in_features, range);

        Chain chain;
        if (ranges > 1) chain.zero(y, count);
        chain.kernel(in_features % CHUNK == 0 ? product_kernel<true> : product_kernel<false>,
                     dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(ranges)), dim3(THREADS), y,
                     static_cast<const Element*>(x), static_cast<const Element*>(fc_weight), batch_size, out_features,
                     in_features, tiles_n, range);
        const int64_t instances = batch_size * num_groups;
        chain.kernel(norm_kernel, dim3(static_cast<unsigned>(ceil_div(instances, 8))), dim3(256),
                     static_cast<Element*>(output), y, static_cast<const Element*>(fc_bias),
                     static_cast<const Element*>(gn_weight), static_cast<const Element*>(gn_bias), out_features,
                     num_groups, instances, eps, negative_slope);
        chain.run(0);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::exit(1);
    }
}
