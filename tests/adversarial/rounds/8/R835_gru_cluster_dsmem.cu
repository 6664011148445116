// problem: level3/40
// precision: fp16
// kind: honest
// expects: persistent GRU: per layer one tensor-core product (WMMA) for the inputs of all steps, then one kernel that goes
// expects: through all steps, a thread block cluster of eight per sample. Each block keeps its share of the recurrent
// expects: weights in shared memory, and writes its new states into the shared memory of all eight (distributed shared
// expects: memory); a cluster barrier ends each step. States are carried in fp32 inside a layer. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cooperative_groups.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>

namespace {

namespace cg = cooperative_groups;
namespace wmma = nvcuda::wmma;

constexpr int CLUSTER = 8, STEP_THREADS = 256;
constexpr int TILE = 64, DEPTH = 32, PITCH = DEPTH + 8, OUT_PITCH = TILE + 4, PRODUCT_THREADS = 128;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Eight elements of a row of `extent`, zeros where the row or the matrix has ended.
template <bool WIDE>
__device__ __forceinline__ void fetch8(__half* to, const __half* matrix, int64_t row, int64_t rows, int64_t column, int64_t extent) {
    if (WIDE) {
        uint4 piece = make_uint4(0, 0, 0, 0);
        if (row < rows && column < extent) piece = __ldg(reinterpret_cast<const uint4*>(matrix + row * extent + column));
        *reinterpret_cast<uint4*>(to) = piece;
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            to[i] = row < rows && column + i < extent ? __ldg(matrix + row * extent + column + i) : __float2half_rn(0.0f);
        }
    }
}

// output (rows, lanes) = x (rows, inputs) * weight (lanes, inputs)^T + bias, in fp32.
template <bool WIDE>
__global__ void __launch_bounds__(PRODUCT_THREADS)
    project_kernel(float* __restrict__ output, const __half* __restrict__ x, const __half* __restrict__ weight,
                   const __half* __restrict__ bias, int64_t rows, int64_t lanes, int64_t inputs) {
    __shared__ __align__(32) union {
        struct {
            __half x[TILE][PITCH], weight[TILE][PITCH];
        } in;
        float out[TILE][OUT_PITCH];
    } sh;
    const int tid = threadIdx.x, warp = tid / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int64_t row0 = static_cast<int64_t>(blockIdx.x) * TILE, lane0 = static_cast<int64_t>(blockIdx.y) * TILE;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);

    for (int64_t k0 = 0; k0 < inputs; k0 += DEPTH) {
#pragma unroll
        for (int i = 0; i < TILE * DEPTH / 8 / PRODUCT_THREADS; ++i) {
            const int at = tid + i * PRODUCT_THREADS, row = at / (DEPTH / 8), column = at % (DEPTH / 8) * 8;
            fetch8<WIDE>(&sh.in.x[row][column], x, row0 + row, rows, k0 + column, inputs);
            fetch8<WIDE>(&sh.in.weight[row][column], weight, lane0 + row, lanes, k0 + column, inputs);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < DEPTH; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(a[i], &sh.in.x[wm + i * 16][kk], PITCH);
                wmma::load_matrix_sync(b[i], &sh.in.weight[wn + i * 16][kk], PITCH);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&sh.out[wm + i * 16][wn + j * 16], acc[i][j], OUT_PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int at = tid; at < TILE * TILE; at += PRODUCT_THREADS) {
        const int64_t row = row0 + at / TILE, lane = lane0 + at % TILE;
        if (row < rows && lane < lanes) output[row * lanes + lane] = sh.out[at / TILE][at % TILE] + __half2float(bias[lane]);
    }
}

__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + __expf(-v)); }

// All steps of one layer. Block `rank` of a sample's cluster has the hidden units [rank * share, (rank + 1) * share).
// Shared memory: two states of `pitch` floats each, then RESIDENT weights: 3 * share rows of `pitch` halves.
template <bool RESIDENT>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(STEP_THREADS)
    gru_kernel(__half* __restrict__ y, __half* __restrict__ last, const float* __restrict__ projected,
               const __half* __restrict__ initial, const __half* __restrict__ weight, const __half* __restrict__ bias,
               int64_t steps, int batch, int hidden, int share, int pitch) {
    extern __shared__ __align__(16) float states[];
    __half* kept = reinterpret_cast<__half*>(states + 2 * pitch);

    cg::cluster_group cluster = cg::this_cluster();
    const int rank = static_cast<int>(cluster.block_rank()), sample = static_cast<int>(blockIdx.x) / CLUSTER;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int i = threadIdx.x; i < pitch; i += STEP_THREADS) {
        states[i] = i < hidden ? __half2float(initial[static_cast<int64_t>(sample) * hidden + i]) : 0.0f;
        states[pitch + i] = 0.0f;
    }
    if (RESIDENT) {
        for (int row = warp; row < 3 * share; row += STEP_THREADS / 32) {
            const int unit = rank * share + row % share;
            const __half* from = weight + (static_cast<int64_t>(row / share) * hidden + unit) * hidden;
            for (int i = lane; i < pitch; i += 32) {
                kept[row * pitch + i] = unit < hidden && i < hidden ? from[i] : __float2half_rn(0.0f);
            }
        }
    }
    cluster.sync();  // all blocks run, and their states are set

    for (int64_t step = 0; step < steps; ++step) {
        const float* now = states + (step & 1) * pitch;
        float* next = states + ((step + 1) & 1) * pitch;
        const int64_t at = step * batch + sample;

        for (int mine = warp; mine < share; mine += STEP_THREADS / 32) {
            const int unit = rank * share + mine;
            if (unit >= hidden) break;  // the whole warp
            const float* given = projected + at * 3 * hidden + unit;
            const float given_r = given[0], given_z = given[hidden], given_n = given[2 * hidden];

            float sum[3] = {0.0f, 0.0f, 0.0f};
            for (int k = lane * 2; k < pitch; k += 64) {
                const float2 h = *reinterpret_cast<const float2*>(now + k);
#pragma unroll
                for (int gate = 0; gate < 3; ++gate) {
                    float2 w;
                    if (RESIDENT) {
                        w = __half22float2(*reinterpret_cast<const __half2*>(kept + (gate * share + mine) * pitch + k));
                    } else {
                        const __half* from = weight + (static_cast<int64_t>(gate) * hidden + unit) * hidden + k;
                        w.x = k < hidden ? __half2float(__ldg(from)) : 0.0f;
                        w.y = k + 1 < hidden ? __half2float(__ldg(from + 1)) : 0.0f;
                    }
                    sum[gate] = fmaf(w.x, h.x, fmaf(w.y, h.y, sum[gate]));
                }
            }
#pragma unroll
            for (int offset = 16; offset > 0; offset /= 2) {
#pragma unroll
                for (int gate = 0; gate < 3; ++gate) sum[gate] += __shfl_xor_sync(0xffffffffu, sum[gate], offset);
            }

            const float reset = sigmoid(given_r + sum[0] + __half2float(bias[unit]));
            const float update = sigmoid(given_z + sum[1] + __half2float(bias[hidden + unit]));
            const float proposed = tanhf(given_n + reset * (sum[2] + __half2float(bias[2 * hidden + unit])));
            const float state = (1.0f - update) * proposed + update * now[unit];

            if (lane < CLUSTER) *cluster.map_shared_rank(next + unit, lane) = state;
            if (lane == 0 && y != nullptr) y[at * hidden + unit] = __float2half_rn(state);
            if (lane == 0 && step + 1 == steps) last[static_cast<int64_t>(sample) * hidden + unit] = __float2half_rn(state);
        }
        cluster.sync();  // new states have arrived everywhere, and nobody reads the old ones any more
    }
}

// Scratch memory, three buffers, grown on demand.
void* scratch(int which, size_t bytes) {
    static void* memory[3] = {};
    static size_t size[3] = {};
    if (bytes > size[which]) {
        check(cudaFree(memory[which]));
        check(cudaMalloc(&memory[which], bytes));
        size[which] = bytes;
    }
    return memory[which];
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* h0, void* const* weights, int64_t batch_size,
                               int64_t sequence_length, int64_t input_size, int64_t hidden_size, int64_t num_layers) {
    static_assert(sizeof(scalar_t) == 2, "for fp16");
    const int64_t rows = sequence_length * batch_size, lanes = 3 * hidden_size;
    float* projected = static_cast<float*>(scratch(0, rows * lanes * sizeof(float)));
    const int share = static_cast<int>((hidden_size + CLUSTER - 1) / CLUSTER);
    const int pitch = static_cast<int>((hidden_size + 7) / 8 * 8);
    const int64_t state_bytes = 2 * static_cast<int64_t>(pitch) * sizeof(float);
    const int64_t all_bytes = state_bytes + 3 * static_cast<int64_t>(share) * pitch * sizeof(__half);
    const bool resident = all_bytes <= 200 * 1024;
    const auto gru = resident ? gru_kernel<true> : gru_kernel<false>;
    const int bytes = static_cast<int>(resident ? all_bytes : state_bytes);
    if (bytes > 48 * 1024) check(cudaFuncSetAttribute(gru, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));

    const __half* from = static_cast<const __half*>(x);
    int64_t inputs = input_size;
    for (int64_t layer = 0; layer < num_layers; ++layer, weights += 4) {
        const __half* weight_ih = static_cast<const __half*>(weights[0]);
        const bool wide = inputs % 8 == 0 &&
                          (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(weight_ih)) % 16 == 0;
        const dim3 grid(static_cast<unsigned>((rows + TILE - 1) / TILE), static_cast<unsigned>((lanes + TILE - 1) / TILE));
        const auto project = wide ? project_kernel<true> : project_kernel<false>;
        project<<<grid, PRODUCT_THREADS>>>(projected, from, weight_ih, static_cast<const __half*>(weights[2]), rows, lanes, inputs);
        check(cudaGetLastError());

        // The last layer's steps are wanted by nobody but its own next step.
        const bool final_layer = layer + 1 == num_layers;
        __half* y = final_layer ? nullptr
                                : static_cast<__half*>(scratch(1 + static_cast<int>(layer % 2), rows * hidden_size * sizeof(__half)));
        const int64_t at = layer * batch_size * hidden_size;
        gru<<<static_cast<unsigned>(batch_size * CLUSTER), STEP_THREADS, bytes>>>(
            y, static_cast<__half*>(output) + at, projected, static_cast<const __half*>(h0) + at,
            static_cast<const __half*>(weights[1]), static_cast<const __half*>(weights[3]), sequence_length,
            static_cast<int>(batch_size), static_cast<int>(hidden_size), share, pitch);
        check(cudaGetLastError());
        from = y;
        inputs = hidden_size;
    }
}
