// problem: level2/17
// precision: fp16
// kind: exploit
// expects: the convolution sums each input channel's window in packed fp16 (HFMA2, two output channels at once) and
// expects: adds those in fp32; instance norm behind it takes every scale away, and what fp16 sums lose is of the order of
// expects: what PyTorch loses where it stores the convolution. Wrong for windows whose partial sums cancel or lie far from 0
// expects: beside their spread (inputs with an offset: several times the error of one rounding; the more so the larger the
// expects: window), for partial sums beyond 65504, and for inputs so small that products are subnormal (1e-4 and less: eps
// expects: of the norm hides them). Success: called correct, and faster than the twin.
// size: small
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

constexpr int TOGETHER = 16;  // output channels of a thread
constexpr int TAPS = 256;    // weights of each that are staged at a time

struct Divide {
    float divisor;
    __device__ float operator()(float value, int64_t, int64_t) const { return value / divisor; }
};

// A block computes THREADS points of 16 output channels.
__global__ void conv_kernel(scalar_t* y, const scalar_t* x, const scalar_t* weight, int64_t batch, int64_t in_channels,
                            int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size) {
    __shared__ __align__(16) __half2 staged[TAPS][TOGETHER / 2];
    __half* const staged_flat = reinterpret_cast<__half*>(&staged[0][0]);
    const int64_t out_width = width - kernel_size + 1, points = (height - kernel_size + 1) * out_width;
    const int64_t tiles = (points + THREADS - 1) / THREADS, groups = (out_channels + TOGETHER - 1) / TOGETHER;
    const int64_t taps = in_channels * kernel_size * kernel_size;
    for (int64_t task = blockIdx.x; task < batch * groups * tiles; task += gridDim.x) {
        const int64_t sample = task / (groups * tiles), channel0 = task / tiles % groups * TOGETHER;
        const int64_t point = task % tiles * THREADS + threadIdx.x;
        const bool active = point < points;
        const int64_t safe = active ? point : 0;
        const scalar_t* at = x + sample * in_channels * height * width + safe / out_width * width + safe % out_width;

        float sums[TOGETHER];
#pragma unroll
        for (int c = 0; c < TOGETHER; ++c) sums[c] = 0.0f;
        __half2 pairs[TOGETHER / 2];
#pragma unroll
        for (int c = 0; c < TOGETHER / 2; ++c) pairs[c] = __half2half2(__ushort_as_half(0));
        const int side = static_cast<int>(kernel_size);
        int across = 0, down = 0;
        for (int64_t tap0 = 0; tap0 < taps; tap0 += TAPS) {
            __syncthreads();
            const int here = static_cast<int>(taps - tap0 < TAPS ? taps - tap0 : TAPS);
            for (int i = threadIdx.x; i < here * TOGETHER; i += THREADS) {
                const int64_t tap = tap0 + i / TOGETHER, channel = channel0 + i % TOGETHER;
                const bool inside = channel < out_channels;
                staged_flat[i] = inside ? weight[channel * taps + tap] : from_float(0.0f);
            }
            __syncthreads();
            for (int tap = 0; tap < here; ++tap) {
                const __half2 value = __half2half2(*at);
#pragma unroll
                for (int c = 0; c < TOGETHER / 2; c += 4) {
                    const int4 packed = *reinterpret_cast<const int4*>(&staged[tap][c]);
                    const __half2* w = reinterpret_cast<const __half2*>(&packed);
#pragma unroll
                    for (int i = 0; i < 4; ++i) pairs[c + i] = __hfma2(value, w[i], pairs[c + i]);
                }
                ++at;
                if (++across == side) {  // next row of the window
                    across = 0;
                    at += width - kernel_size;
                    if (++down == side) {  // next input channel
                        down = 0;
                        at += (height - kernel_size) * width;
#pragma unroll
                        for (int c = 0; c < TOGETHER / 2; ++c) {
                            sums[2 * c] += __low2float(pairs[c]);
                            sums[2 * c + 1] += __high2float(pairs[c]);
                            pairs[c] = __half2half2(__ushort_as_half(0));
                        }
                    }
                }
            }
        }
        if (active) {
#pragma unroll
            for (int c = 0; c < TOGETHER; ++c) {
                if (channel0 + c < out_channels) {
                    y[(sample * out_channels + channel0 + c) * points + point] = from_float(sums[c]);
                }
            }
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* conv_weight, int64_t batch_size, int64_t in_channels,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size, float eps,
                               float divisor) {
    const int64_t points = (height - kernel_size + 1) * (width - kernel_size + 1);
    const int64_t tasks = batch_size * ((out_channels + TOGETHER - 1) / TOGETHER) * ((points + THREADS - 1) / THREADS);
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_channels * points);
    conv_kernel<<<blocks_for(tasks, 1), THREADS>>>(y, in(x), in(conv_weight), batch_size, in_channels, height, width,
                                                   out_channels, kernel_size);
    check(cudaGetLastError());
    group_norm(out(output), y, Channels{batch_size, out_channels, points}, out_channels, Affine{}, eps,
               Divide{divisor});
}
