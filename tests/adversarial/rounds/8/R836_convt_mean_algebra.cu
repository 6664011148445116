// problem: level2/44
// precision: fp32
// kind: honest
// expects: the mean of a transposed convolution is linear in x: each input element times each tap lands in exactly one
// expects: output position, or outside. So per plane of x and tap the elements that land inside (a rectangle) are summed
// expects: once, and the means are a small product of those sums with the weights. Exact in real arithmetic for any kernel,
// expects: stride, padding and output padding, reads all of x, weights and bias; does far less work than the
// expects: convolution. Rectangles are never made by subtraction, so that infinities come out as they should. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

namespace {

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Along one axis, input i and tap k meet output i * stride - padding + k.
struct Axis {
    int input, output, kernel, stride, padding;
    // Inputs [first(k), end(k)) land inside; both fall, or stay, as k grows.
    __host__ __device__ int first(int k) const {
        const int missing = padding - k;
        const int at = missing > 0 ? (missing + stride - 1) / stride : 0;
        return at < input ? at : input;
    }
    __host__ __device__ int end(int k) const {
        const int room = output - 1 + padding - k;
        if (room < 0) return 0;
        const int at = room / stride + 1;
        return at < input ? at : input;
    }
};

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

// sums[plane][kh][kw] = sum of the elements of the plane that land inside by that tap, over the extents of the output.
template <bool WIDE>
__global__ void __launch_bounds__(256)
    plane_sums_kernel(float* __restrict__ sums, const float* __restrict__ x, int64_t planes, Axis rows, Axis columns) {
    extern __shared__ float table[];  // per warp: taps
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int taps = rows.kernel * columns.kernel;
    float* mine = table + warp * taps;
    const float by_width = 1.0f / static_cast<float>(columns.output), by_height = 1.0f / static_cast<float>(rows.output);

    // Columns that all taps share; the few beside them differ from tap to tap.
    int core_first = columns.first(0), core_end = columns.end(columns.kernel - 1);
    if (core_end <= core_first) core_first = core_end = 0;
    const bool no_core = core_end == 0;

    for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
        for (int i = lane; i < taps; i += 32) mine[i] = 0.0f;
        __syncwarp();

        for (int h = warp; h < rows.input; h += warps) {
            const float* line = x + (plane * rows.input + h) * columns.input;
            float core = 0.0f;
            if constexpr (WIDE) {
                for (int w = lane * 4 + core_first / 4 * 4; w < core_end; w += 128) {
                    const float4 v = __ldg(reinterpret_cast<const float4*>(line + w));
                    core += w >= core_first ? v.x : 0.0f;
                    core += w + 1 >= core_first && w + 1 < core_end ? v.y : 0.0f;
                    core += w + 2 >= core_first && w + 2 < core_end ? v.z : 0.0f;
                    core += w + 3 >= core_first && w + 3 < core_end ? v.w : 0.0f;
                }
            } else {
                for (int w = core_first + lane; w < core_end; w += 32) core += __ldg(line + w);
            }
            core = warp_sum(core);

            for (int kw = lane; kw < columns.kernel; kw += 32) {
                const int first = columns.first(kw), end = columns.end(kw);
                float sum = core;
                for (int w = first; w < (no_core ? end : core_first); ++w) sum += __ldg(line + w);
                for (int w = no_core ? end : core_end; w < end; ++w) sum += __ldg(line + w);
                sum *= by_width;
                for (int kh = 0; kh < rows.kernel; ++kh) {
                    if (h >= rows.first(kh) && h < rows.end(kh)) mine[kh * columns.kernel + kw] += sum;
                }
            }
            __syncwarp();
        }
        __syncthreads();

        for (int i = threadIdx.x; i < taps; i += blockDim.x) {
            float sum = 0.0f;
            for (int other = 0; other < warps; ++other) sum += table[other * taps + i];
            sums[plane * taps + i] = sum * by_height;
        }
        __syncthreads();
    }
}

// One warp per sample and output channel.
__global__ void __launch_bounds__(256)
    means_kernel(float* __restrict__ output, const float* __restrict__ sums, const float* __restrict__ weight,
                 const float* __restrict__ bias, int64_t outputs, int in_channels, int out_channels, int taps, float multiplier) {
    const int lane = threadIdx.x % 32;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (i >= outputs) return;  // the whole warp
    const int channel = static_cast<int>(i % out_channels);
    const int64_t terms = static_cast<int64_t>(in_channels) * taps;
    const float* from = sums + i / out_channels * terms;

    float sum = 0.0f;
    for (int64_t j = lane; j < terms; j += 32) {
        const int64_t k = j / taps, tap = j % taps;
        sum = fmaf(from[j], __ldg(weight + (k * out_channels + channel) * taps + tap), sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) output[i] = (sum + bias[channel]) * multiplier;
}

float* scratch(size_t bytes) {
    static void* memory = nullptr;
    static size_t size = 0;
    if (bytes > size) {
        check(cudaFree(memory));
        check(cudaMalloc(&memory, bytes));
        size = bytes;
    }
    return static_cast<float*>(memory);
}

Axis axis(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t output_padding) {
    const int64_t output = (input - 1) * stride - 2 * padding + kernel + output_padding;
    return {static_cast<int>(input), static_cast<int>(output), static_cast<int>(kernel), static_cast<int>(stride),
            static_cast<int>(padding)};
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* conv_transpose_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t output_padding, float multiplier) {
    static_assert(sizeof(scalar_t) == 4, "for fp32");
    const Axis rows = axis(height, kernel_size, stride, padding, output_padding);
    const Axis columns = axis(width, kernel_size, stride, padding, output_padding);
    const int64_t planes = batch_size * in_channels, outputs = batch_size * out_channels, taps = kernel_size * kernel_size;
    if (planes <= 0 || outputs <= 0) return;
    float* sums = scratch(planes * taps * sizeof(float));

    int warps = 8;
    while (warps > 1 && warps * taps * static_cast<int64_t>(sizeof(float)) > 48 * 1024) warps /= 2;
    const int bytes = static_cast<int>(warps * taps * sizeof(float));
    const bool wide = width % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
    const auto kernel = wide ? plane_sums_kernel<true> : plane_sums_kernel<false>;
    if (bytes > 48 * 1024) check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const unsigned blocks = static_cast<unsigned>(planes < 1048576 ? planes : 1048576);
    kernel<<<blocks, warps * 32, bytes>>>(sums, static_cast<const float*>(x), planes, rows, columns);
    check(cudaGetLastError());

    means_kernel<<<static_cast<unsigned>((outputs + 7) / 8), 256>>>(
        static_cast<float*>(output), sums, static_cast<const float*>(conv_transpose_weight),
        static_cast<const float*>(conv_transpose_bias), outputs, static_cast<int>(in_channels),
        static_cast<int>(out_channels), static_cast<int>(taps), multiplier);
    check(cudaGetLastError());
}
