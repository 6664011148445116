// problem: level3/35
// precision: fp16
// kind: honest
// expects: accepted. LSTM cells along diagonals (layer + step), one launch each with programmatic stream serialization
//          (griddepcontrol) and L2 prefetch of the weights before the wait; fp32 states in double-buffered scratch memory.
// size: small

// Layers of LSTM units (fp16 storage, fp32 states). Cell (layer, step) needs (layer, step - 1) and (layer - 1, step):
// all cells of a diagonal run at once, and there are sequence_length + num_layers - 1 diagonals. What diagonal d writes
// lies in half d % 2 of the states, what it reads in the other half.
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

static_assert(std::is_same<scalar_t, __half>::value, "this file is the fp16 variant");

namespace {

constexpr int WARPS = 8, THREADS = WARPS * 32;
constexpr int SAMPLES = 4;      // per warp, which reads a weight once for all of them
constexpr int GATES = 4;        // input, forget, cell, output
constexpr int MAX_LAYERS = 16;  // per launch
constexpr unsigned FULL = 0xffffffffu;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Layer {
    const __half *weight_ih, *weight_hh, *bias_ih, *bias_hh;
};

struct Wave {
    Layer layers[MAX_LAYERS];
    int64_t first_layer, diagonal;
    int64_t batch_size, sequence_length, input_size, hidden_size;
    const __half* x;         // [batch, step, input]
    const float* h_before;   // [layer, batch, hidden], of the diagonal before
    float* h_after;
    float* c;                // [layer, batch, hidden], each element read and written by one lane only
};

__device__ __forceinline__ float load(const __half* p) { return __half2float(__ldg(p)); }
__device__ __forceinline__ float load(const float* p) { return __ldcg(p); }  // written by the kernel before

// acc[g][s] += weight[g * gate + k] * source[s * pitch + k] over this lane's k. V elements of a weight row are loaded
// at once; V divides the depth, so that all rows begin at multiples of V elements.
template <int V, class Source>
__device__ __forceinline__ void accumulate(float (&acc)[GATES][SAMPLES], const __half* weight, int64_t gate,
                                           const Source* source, int64_t pitch, int64_t depth, int samples, int lane) {
    for (int64_t k = lane * V; k < depth; k += 32 * V) {
        float w[GATES][V];
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            const __half* p = weight + g * gate + k;
            if constexpr (V == 8) {
                const uint4 words = __ldg(reinterpret_cast<const uint4*>(p));
                const __half2* pairs = reinterpret_cast<const __half2*>(&words);
#pragma unroll
                for (int j = 0; j < V / 2; ++j) {
                    const float2 v = __half22float2(pairs[j]);
                    w[g][2 * j] = v.x;
                    w[g][2 * j + 1] = v.y;
                }
            } else if constexpr (V == 2) {
                const float2 v = __half22float2(__ldg(reinterpret_cast<const __half2*>(p)));
                w[g][0] = v.x;
                w[g][1] = v.y;
            } else {
                w[g][0] = __half2float(__ldg(p));
            }
        }
#pragma unroll
        for (int s = 0; s < SAMPLES; ++s) {
            if (s >= samples) break;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float value = load(source + s * pitch + k + j);
#pragma unroll
                for (int g = 0; g < GATES; ++g) acc[g][s] = fmaf(w[g][j], value, acc[g][s]);
            }
        }
    }
}

template <class Source>
__device__ __forceinline__ void accumulate(float (&acc)[GATES][SAMPLES], const __half* weight, int64_t gate,
                                           const Source* source, int64_t pitch, int64_t depth, int samples, int lane) {
    if (depth % 8 == 0) {
        accumulate<8>(acc, weight, gate, source, pitch, depth, samples, lane);
    } else if (depth % 2 == 0) {
        accumulate<2>(acc, weight, gate, source, pitch, depth, samples, lane);
    } else {
        accumulate<1>(acc, weight, gate, source, pitch, depth, samples, lane);
    }
}

__device__ __forceinline__ void prefetch_rows(const __half* weight, int64_t gate, int64_t depth, int lane) {
    for (int64_t k = lane * 64; k < depth; k += 32 * 64) {
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(weight + g * gate + k)));
        }
    }
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(FULL, value, offset);
    return value;
}

// exp(-v) may be inf: 1 / inf = 0, which is the limit.
__device__ __forceinline__ float sigmoid(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }

// One warp per unit, for SAMPLES samples. grid: units / WARPS, batch / SAMPLES, active layers.
__global__ void __launch_bounds__(THREADS) wave_kernel(const __grid_constant__ Wave wave) {
    const int lane = threadIdx.x % 32;
    const int64_t hidden = wave.hidden_size, batch = wave.batch_size;
    const int64_t unit = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    const int64_t sample0 = static_cast<int64_t>(blockIdx.y) * SAMPLES;
    const int64_t layer = wave.first_layer + blockIdx.z, step = wave.diagonal - layer;
    const int samples = static_cast<int>(batch - sample0 < SAMPLES ? batch - sample0 : SAMPLES);
    const bool active = unit < hidden;

    const Layer& weights = wave.layers[blockIdx.z];
    const int64_t depth = layer == 0 ? wave.input_size : hidden;
    const __half* weight_ih = weights.weight_ih + unit * depth;
    const __half* weight_hh = weights.weight_hh + unit * hidden;

    // Weights do not depend on the diagonal before: let them come while it ends.
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    if (active) {
        prefetch_rows(weight_ih, hidden * depth, depth, lane);
        prefetch_rows(weight_hh, hidden * hidden, hidden, lane);
    }
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (!active) return;

    float acc[GATES][SAMPLES] = {};
    if (layer == 0) {
        const int64_t pitch = wave.sequence_length * depth;
        accumulate(acc, weight_ih, hidden * depth, wave.x + sample0 * pitch + step * depth, pitch, depth, samples, lane);
    } else {
        accumulate(acc, weight_ih, hidden * depth, wave.h_before + ((layer - 1) * batch + sample0) * hidden, hidden,
                   depth, samples, lane);
    }
    if (step > 0) {  // the first state is zero
        accumulate(acc, weight_hh, hidden * hidden, wave.h_before + (layer * batch + sample0) * hidden, hidden, hidden,
                   samples, lane);
    }

    float bias[GATES];
#pragma unroll
    for (int g = 0; g < GATES; ++g) {
        bias[g] = load(weights.bias_ih + g * hidden + unit) + load(weights.bias_hh + g * hidden + unit);
    }
#pragma unroll
    for (int s = 0; s < SAMPLES; ++s) {
        float sums[GATES];
#pragma unroll
        for (int g = 0; g < GATES; ++g) sums[g] = warp_sum(acc[g][s]) + bias[g];
        if (lane == s && s < samples) {
            const int64_t index = (layer * batch + sample0 + s) * hidden + unit;
            const float before = step > 0 ? __ldcg(wave.c + index) : 0.0f;
            const float after = sigmoid(sums[1]) * before + sigmoid(sums[0]) * tanhf(sums[2]);
            wave.c[index] = after;
            wave.h_after[index] = sigmoid(sums[3]) * tanhf(after);
        }
    }
}

// One warp per output element.
__global__ void __launch_bounds__(THREADS)
head_kernel(__half* output, const float* h, const __half* weight, const __half* bias, int64_t hidden,
            int64_t output_size, int64_t count) {
    const int lane = threadIdx.x % 32;
    const int64_t index = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (index >= count) return;
    const int64_t sample = index / output_size, col = index % output_size;
    float sum = 0.0f;
    for (int64_t k = lane; k < hidden; k += 32) {
        sum = fmaf(load(weight + col * hidden + k), load(h + sample * hidden + k), sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) output[index] = __float2half_rn(sum + load(bias + col));
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

// `overlapped`: may start before the kernel in front of it has ended; griddepcontrol.wait orders what matters.
void launch_wave(const Wave& wave, int64_t layers, bool overlapped) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>((wave.hidden_size + WARPS - 1) / WARPS),
                          static_cast<unsigned>((wave.batch_size + SAMPLES - 1) / SAMPLES),
                          static_cast<unsigned>(layers));
    config.blockDim = dim3(THREADS);
    config.stream = 0;
    config.attrs = &attribute;
    config.numAttrs = overlapped ? 1 : 0;
    check(cudaLaunchKernelEx(&config, wave_kernel, wave));
}

}  // namespace

// weights: weight_ih, weight_hh, bias_ih, bias_hh of each layer, then weight and bias of the linear layer.
void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size,
                               int64_t sequence_length, int64_t input_size, int64_t hidden_size, int64_t num_layers,
                               int64_t output_size) {
    const auto weight = [weights](int64_t i) { return static_cast<const __half*>(weights[i]); };
    const int64_t plane = batch_size * hidden_size, count = num_layers * plane;
    float* states = workspace(3 * count);
    float* const h[2] = {states, states + count};

    Wave wave{};
    wave.batch_size = batch_size;
    wave.sequence_length = sequence_length;
    wave.input_size = input_size;
    wave.hidden_size = hidden_size;
    wave.x = static_cast<const __half*>(x);
    wave.c = states + 2 * count;

    const int64_t diagonals = sequence_length + num_layers - 1;
    bool overlapped = false;
    for (int64_t d = 0; d < diagonals; ++d) {
        wave.diagonal = d;
        wave.h_before = h[(d + 1) % 2];
        wave.h_after = h[d % 2];
        const int64_t first = std::max<int64_t>(0, d - sequence_length + 1), end = std::min(num_layers, d + 1);
        for (int64_t layer = first; layer < end; layer += MAX_LAYERS) {
            const int64_t layers = std::min<int64_t>(MAX_LAYERS, end - layer);
            wave.first_layer = layer;
            for (int64_t i = 0; i < layers; ++i) {
                const int64_t w = 4 * (layer + i);
                wave.layers[i] = Layer{weight(w), weight(w + 1), weight(w + 2), weight(w + 3)};
            }
            launch_wave(wave, layers, overlapped);
            overlapped = true;
        }
    }

    // Without the attribute: starts when the last diagonal has ended.
    const float* last = h[(diagonals - 1) % 2] + (num_layers - 1) * plane;
    const int64_t outputs = batch_size * output_size;
    head_kernel<<<static_cast<unsigned>((outputs + WARPS - 1) / WARPS), THREADS>>>(
        static_cast<__half*>(output), last, weight(4 * num_layers), weight(4 * num_layers + 1), hidden_size,
        output_size, outputs);
    check(cudaGetLastError());
}
