// problem: level2/1
// does: Winograd's F(2x2, 3x3) in fp32, weights transformed at each call, a direct kernel for other windows
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks": Y = A^T [(G g G^T) * (B^T d B)] A.
__global__ void transform_weights(float* u, const scalar_t* w, int64_t filters) {
    const int64_t f = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (f >= filters) return;
    float g[3][3], t[4][3];
    for (int i = 0; i < 9; ++i) g[i / 3][i % 3] = to_float(w[f * 9 + i]);
    for (int j = 0; j < 3; ++j) {
        t[0][j] = g[0][j];
        t[1][j] = 0.5f * (g[0][j] + g[1][j] + g[2][j]);
        t[2][j] = 0.5f * (g[0][j] - g[1][j] + g[2][j]);
        t[3][j] = g[2][j];
    }
    for (int i = 0; i < 4; ++i) {
        u[f * 16 + i * 4 + 0] = t[i][0];
        u[f * 16 + i * 4 + 1] = 0.5f * (t[i][0] + t[i][1] + t[i][2]);
        u[f * 16 + i * 4 + 2] = 0.5f * (t[i][0] - t[i][1] + t[i][2]);
        u[f * 16 + i * 4 + 3] = t[i][2];
    }
}

// One thread per tile of 2 x 2 outputs of one channel.
__global__ void winograd(scalar_t* y, const scalar_t* x, const float* u, const scalar_t* conv_bias, const scalar_t* bias,
                         int64_t in_channels, int64_t out_channels, int64_t height, int64_t width) {
    const int64_t oh = height - 2, ow = width - 2, across = (ow + 1) / 2, tiles = (oh + 1) / 2 * across;
    const int64_t tile = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (tile >= tiles) return;
    const int64_t channel = blockIdx.y, sample = blockIdx.z, row = tile / across * 2, col = tile % across * 2;
    float m[4][4] = {};
    for (int64_t c = 0; c < in_channels; ++c) {
        const scalar_t* image = x + (sample * in_channels + c) * height * width;
        float d[4][4], t[4][4];
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j)
                d[i][j] = row + i < height && col + j < width ? to_float(image[(row + i) * width + col + j]) : 0.0f;
        for (int j = 0; j < 4; ++j) {
            t[0][j] = d[0][j] - d[2][j];
            t[1][j] = d[1][j] + d[2][j];
            t[2][j] = d[2][j] - d[1][j];
            t[3][j] = d[1][j] - d[3][j];
        }
        const float4* filter = reinterpret_cast<const float4*>(u + (channel * in_channels + c) * 16);
        for (int i = 0; i < 4; ++i) {
            const float4 g = filter[i];
            m[i][0] += g.x * (t[i][0] - t[i][2]);
            m[i][1] += g.y * (t[i][1] + t[i][2]);
            m[i][2] += g.z * (t[i][2] - t[i][1]);
            m[i][3] += g.w * (t[i][1] - t[i][3]);
        }
    }
    float s[2][4];
    for (int j = 0; j < 4; ++j) {
        s[0][j] = m[0][j] + m[1][j] + m[2][j];
        s[1][j] = m[1][j] - m[2][j] - m[3][j];
    }
    for (int i = 0; i < 2; ++i) {
        const float pair[2] = {s[i][0] + s[i][1] + s[i][2], s[i][1] - s[i][2] - s[i][3]};
        for (int j = 0; j < 2; ++j) {
            if (row + i >= oh || col + j >= ow) continue;
            const float v = fmaxf(pair[j] + to_float(conv_bias[channel]), 0.0f) + to_float(bias[channel]);
            y[((sample * out_channels + channel) * oh + row + i) * ow + col + j] = from_float(v);
        }
    }
}

__global__ void direct(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* conv_bias, const scalar_t* bias,
                       int64_t in_channels, int64_t out_channels, int64_t height, int64_t width, int64_t taps) {
    const int64_t oh = height - taps + 1, ow = width - taps + 1;
    const int64_t p = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= oh * ow) return;
    const int64_t channel = blockIdx.y, sample = blockIdx.z;
    float sum = to_float(conv_bias[channel]);
    for (int64_t c = 0; c < in_channels; ++c)
        for (int64_t i = 0; i < taps; ++i)
            for (int64_t j = 0; j < taps; ++j)
                sum += to_float(x[((sample * in_channels + c) * height + p / ow + i) * width + p % ow + j]) *
                       to_float(w[((channel * in_channels + c) * taps + i) * taps + j]);
    y[(sample * out_channels + channel) * oh * ow + p] = from_float(fmaxf(sum, 0.0f) + to_float(bias[channel]));
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width, int64_t kernel_size) {
    auto* y = static_cast<scalar_t*>(output);
    const auto *in = static_cast<const scalar_t*>(x), *w = static_cast<const scalar_t*>(conv_weight),
               *cb = static_cast<const scalar_t*>(conv_bias), *b = static_cast<const scalar_t*>(bias);
    const int64_t oh = height - kernel_size + 1, ow = width - kernel_size + 1;
    if (kernel_size != 3) {
        direct<<<dim3(unsigned((oh * ow + 127) / 128), unsigned(out_channels), unsigned(batch_size)), 128>>>(
            y, in, w, cb, b, in_channels, out_channels, height, width, kernel_size);
        return;
    }
    static float* u = nullptr;
    static int64_t held = 0;
    const int64_t filters = in_channels * out_channels;
    if (filters > held) {
        cudaFree(u);
        cudaMalloc(&u, filters * 16 * sizeof(float));
        held = filters;
    }
    transform_weights<<<unsigned((filters + 127) / 128), 128>>>(u, w, filters);
    const int64_t tiles = (oh + 1) / 2 * ((ow + 1) / 2);
    winograd<<<dim3(unsigned((tiles + 127) / 128), unsigned(out_channels), unsigned(batch_size)), 128>>>(
        y, in, u, cb, b, in_channels, out_channels, height, width);
}
