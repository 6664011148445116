// problem: level3/1
// precision: fp32
// kind: honest
// expects: accepted. Split-K products by fp32 atomics (order not fixed), the last one straight into the output; a side
//          stream, forked and joined by events in each call, zeroes later accumulators behind the first layer.
// size: small

// Three linear layers with rectifiers between them (fp32). The batch is small and the weights are huge: the depth of
// each product is cut into ranges, whose sums meet in zeroed accumulators. The rectifier is applied where the next
// layer reads, since no block knows which contribution to an accumulator is the last.
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

static_assert(std::is_same<scalar_t, float>::value, "this file is the fp32 variant");

namespace {

constexpr int BM = 64, BN = 64, BK = 16, THREADS = 256;
constexpr int PITCH = BM + 4;  // whole 16 bytes

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

enum class Input { Plain, Rectified };
enum class Output { Store, Accumulate };

// Four elements of a row from column k on; zero outside. VECTOR: the depth is a multiple of four, so that all rows
// begin at multiples of 16 bytes, and the four are inside or outside together.
template <bool VECTOR>
__device__ __forceinline__ float4 load4(const float* matrix, int64_t row, int64_t rows, int64_t k, int64_t depth) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows) return v;
    const float* p = matrix + row * depth + k;
    if constexpr (VECTOR) {
        if (k < depth) v = *reinterpret_cast<const float4*>(p);
    } else {
        if (k < depth) v.x = p[0];
        if (k + 1 < depth) v.y = p[1];
        if (k + 2 < depth) v.z = p[2];
        if (k + 3 < depth) v.w = p[3];
    }
    return v;
}

__device__ __forceinline__ void store_column(float (*tile)[PITCH], int k, int row, float4 v) {
    tile[k][row] = v.x;
    tile[k + 1][row] = v.y;
    tile[k + 2][row] = v.z;
    tile[k + 3][row] = v.w;
}

template <Input INPUT, Output OUTPUT, bool VECTOR>
__global__ void __launch_bounds__(THREADS)
linear_kernel(float* y, const float* x, const float* weight, const float* bias, int64_t rows, int64_t depth,
              int64_t cols, int64_t range) {
    __shared__ __align__(16) float a[2][BK][PITCH];
    __shared__ __align__(16) float b[2][BK][PITCH];
    const int t = threadIdx.x;
    const int load_row = t / 4, load_k = t % 4 * 4;  // 64 rows of 16: four elements per thread
    const int ty = t / 16, tx = t % 16;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * BM, col0 = static_cast<int64_t>(blockIdx.x) * BN;
    const int64_t begin = blockIdx.z * range;
    const int64_t end = begin + range < depth ? begin + range : depth;  // a multiple of BK, or the depth

    float4 next_a, next_b;
    const auto fetch = [&](int64_t k) {
        next_a = load4<VECTOR>(x, row0 + load_row, rows, k + load_k, depth);
        next_b = load4<VECTOR>(weight, col0 + load_row, cols, k + load_k, depth);
        if constexpr (INPUT == Input::Rectified) {
            next_a = make_float4(fmaxf(next_a.x, 0.0f), fmaxf(next_a.y, 0.0f), fmaxf(next_a.z, 0.0f),
                                 fmaxf(next_a.w, 0.0f));
        }
    };
    const auto stage = [&](int buffer) {
        store_column(a[buffer], load_k, load_row, next_a);
        store_column(b[buffer], load_k, load_row, next_b);
    };

    float sums[4][4] = {};
    int buffer = 0;
    fetch(begin);
    stage(buffer);
    __syncthreads();
    for (int64_t k0 = begin; k0 < end; k0 += BK) {
        const bool more = k0 + BK < end;
        if (more) fetch(k0 + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float4 va = *reinterpret_cast<const float4*>(&a[buffer][k][ty * 4]);
            const float4 vb = *reinterpret_cast<const float4*>(&b[buffer][k][tx * 4]);
            const float fa[4] = {va.x, va.y, va.z, va.w};
            const float fb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(fa[i], fb[j], sums[i][j]);
            }
        }
        if (more) stage(buffer ^ 1);
        __syncthreads();
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int64_t row = row0 + ty * 4 + i;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int64_t col = col0 + tx * 4 + j;
            if (row >= rows || col >= cols) continue;
            const float value = blockIdx.z == 0 ? sums[i][j] + bias[col] : sums[i][j];
            if constexpr (OUTPUT == Output::Accumulate) {
                asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(y + row * cols + col), "f"(value)
                             : "memory");
            } else {
                y[row * cols + col] = value;
            }
        }
    }
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Layer {
    float* y;
    const float *x, *weight, *bias;
    int64_t rows, depth, cols;

    // Ranges of the depth: enough blocks for all SMs, but at least 64 columns each.
    int64_t range() const {
        const int64_t tiles = ceil_div(rows, BM) * ceil_div(cols, BN);
        const int64_t wanted = std::clamp<int64_t>(3 * 132 / tiles, 1, std::max<int64_t>(1, depth / 64));
        return ceil_div(ceil_div(depth, wanted), BK) * BK;
    }
    int64_t ranges() const { return ceil_div(depth, range()); }

    // The accumulator must be zero before run, if there are several ranges.
    void zero(cudaStream_t stream) const {
        if (ranges() > 1) check(cudaMemsetAsync(y, 0, rows * cols * sizeof(float), stream));
    }

    template <Input INPUT>
    void run(cudaStream_t stream) const {
        if (ranges() > 1) {
            launch<INPUT, Output::Accumulate>(stream);
        } else {
            launch<INPUT, Output::Store>(stream);
        }
    }

private:
    template <Input INPUT, Output OUTPUT>
    void launch(cudaStream_t stream) const {
        const auto kernel =
            depth % 4 == 0 ? linear_kernel<INPUT, OUTPUT, true> : linear_kernel<INPUT, OUTPUT, false>;
        const dim3 blocks(static_cast<unsigned>(ceil_div(cols, BN)), static_cast<unsigned>(ceil_div(rows, BM)),
                          static_cast<unsigned>(ranges()));
        kernel<<<blocks, THREADS, 0, stream>>>(y, x, weight, bias, rows, depth, cols, range());
        check(cudaGetLastError());
    }
};

// A stream beside the default one, and the two events that tie it to it.
struct Side {
    cudaStream_t stream{};
    cudaEvent_t forked{}, joined{};

    Side() {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    }
    // After everything that the default stream holds: the call before this one may still read the accumulators.
    void fork() {
        check(cudaEventRecord(forked, 0));
        check(cudaStreamWaitEvent(stream, forked, 0));
    }
    void join() {
        check(cudaEventRecord(joined, stream));
        check(cudaStreamWaitEvent(0, joined, 0));
    }
};

Side& side() {
    static std::optional<Side> instance;
    if (!instance) instance.emplace();
    return *instance;
}

// Grown on demand and kept, so that later calls allocate nothing.
float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    const auto in = [](const void* p) { return static_cast<const float*>(p); };
    const int64_t count1 = ceil_div(batch_size * layer_size1, 4) * 4;  // the second one begins at 16 bytes, too
    float* hidden1 = workspace(count1 + batch_size * layer_size2);
    float* hidden2 = hidden1 + count1;

    const std::array<Layer, 3> layers{
        Layer{hidden1, in(x), in(network_0_weight), in(network_0_bias), batch_size, input_size, layer_size1},
        Layer{hidden2, hidden1, in(network_2_weight), in(network_2_bias), batch_size, layer_size1, layer_size2},
        Layer{static_cast<float*>(output), hidden2, in(network_4_weight), in(network_4_bias), batch_size, layer_size2,
              output_size}};
    const cudaStream_t main_stream = 0;

    Side& aside = side();
    aside.fork();
    layers[1].zero(aside.stream);
    layers[2].zero(aside.stream);

    layers[0].zero(main_stream);
    layers[0].run<Input::Plain>(main_stream);
    aside.join();
    layers[1].run<Input::Rectified>(main_stream);
    layers[2].run<Input::Rectified>(main_stream);
}
