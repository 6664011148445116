// problem: level2/1
// does: copies weights, a group of output channels at a time, to constant memory with cudaMemcpyToSymbolAsync
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int kConstant = 16384;  // scalars, 32 KB of 16-bit values
constexpr int kGroup = 8;         // output channels per thread

struct alignas(16) Raw {
    unsigned char bytes[kConstant * sizeof(scalar_t) > 65536 ? 65536 : kConstant * sizeof(scalar_t)];
};
__constant__ Raw weights;

__global__ void conv_group(scalar_t* y, const scalar_t* x, const scalar_t* bias, const scalar_t* conv_bias, int first,
                           int channels, int in_channels, int out_channels, int64_t height, int64_t width, int taps) {
    const int64_t oh = height - taps + 1, ow = width - taps + 1;
    const int64_t p = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= oh * ow) return;
    const scalar_t* w = reinterpret_cast<const scalar_t*>(weights.bytes);
    const int64_t row = p / ow, col = p % ow, sample = blockIdx.y;
    float sum[kGroup] = {};
    int k = 0;
    const int depth = in_channels * taps * taps;
    for (int c = 0; c < in_channels; ++c) {
        const scalar_t* image = x + ((sample * in_channels + c) * height + row) * width + col;
        for (int i = 0; i < taps; ++i) {
            for (int j = 0; j < taps; ++j, ++k) {
                const float v = to_float(image[i * width + j]);
#pragma unroll
                for (int g = 0; g < kGroup; ++g)
                    if (g < channels) sum[g] = fmaf(v, to_float(w[g * depth + k]), sum[g]);
            }
        }
    }
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
        if (g >= channels) break;
        const float v = sum[g] + to_float(conv_bias[first + g]);
        y[((sample * out_channels) + first + g) * oh * ow + p] = from_float(fmaxf(v, 0.0f) + to_float(bias[first + g]));
    }
}

__global__ void conv_plain(scalar_t* y, const scalar_t* x, const scalar_t* bias, const scalar_t* w,
                           const scalar_t* conv_bias, int in_channels, int out_channels, int64_t height, int64_t width, int taps) {
    const int64_t oh = height - taps + 1, ow = width - taps + 1;
    const int64_t p = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= oh * ow) return;
    const int channel = blockIdx.z;
    float sum = to_float(conv_bias[channel]);
    for (int c = 0; c < in_channels; ++c)
        for (int t = 0; t < taps * taps; ++t)
            sum += to_float(x[((int64_t(blockIdx.y) * in_channels + c) * height + p / ow + t / taps) * width + p % ow + t % taps]) *
                   to_float(w[(int64_t(channel) * in_channels + c) * taps * taps + t]);
    y[(int64_t(blockIdx.y) * out_channels + channel) * oh * ow + p] = from_float(fmaxf(sum, 0.0f) + to_float(bias[channel]));
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels, int64_t height,
                               int64_t width, int64_t kernel_size) {
    auto* y = static_cast<scalar_t*>(output);
    const auto *in = static_cast<const scalar_t*>(x), *b = static_cast<const scalar_t*>(bias),
               *w = static_cast<const scalar_t*>(conv_weight), *cb = static_cast<const scalar_t*>(conv_bias);
    const int64_t depth = in_channels * kernel_size * kernel_size;
    const int64_t out_plane = (height - kernel_size + 1) * (width - kernel_size + 1);
    const unsigned blocks = unsigned((out_plane + 127) / 128);
    if (depth * kGroup * sizeof(scalar_t) > sizeof(Raw)) {
        conv_plain<<<dim3(blocks, unsigned(batch_size), unsigned(out_channels)), 128>>>(
            y, in, b, w, cb, int(in_channels), int(out_channels), height, width, int(kernel_size));
        return;
    }
    for (int64_t first = 0; first < out_channels; first += kGroup) {
        const int64_t channels = out_channels - first < kGroup ? out_channels - first : kGroup;
        cudaMemcpyToSymbolAsync(weights, w + first * depth, channels * depth * sizeof(scalar_t), 0, cudaMemcpyDeviceToDevice, 0);
        conv_group<<<dim3(blocks, unsigned(batch_size)), 128>>>(y, in, b, cb, int(first), int(channels), int(in_channels),
                                                                int(out_channels), height, width, int(kernel_size));
    }
}
