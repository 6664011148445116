// problem: level2/1
// does: writes patches to a matrix, a few samples at a time, and multiplies it by the weights
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <algorithm>

__global__ void im2col(scalar_t* patches, const scalar_t* x, int64_t samples, int64_t channels, int64_t height, int64_t width,
                       int64_t taps) {
    const int64_t oh = height - taps + 1, ow = width - taps + 1, columns = samples * oh * ow;
    const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, k = blockIdx.y;
    if (column >= columns) return;
    const int64_t c = k / (taps * taps), i = k / taps % taps, j = k % taps;
    const int64_t s = column / (oh * ow), row = column / ow % oh, col = column % ow;
    patches[k * columns + column] = x[((s * channels + c) * height + row + i) * width + col + j];
}

__global__ __launch_bounds__(256) void multiply(scalar_t* y, const scalar_t* w, const scalar_t* patches, const scalar_t* conv_bias,
                                                const scalar_t* bias, int64_t out_channels, int64_t depth, int64_t columns,
                                                int64_t pixels) {
    __shared__ float ws[16][33], ps[16][64];
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    const int64_t m0 = int64_t(blockIdx.y) * 32, n0 = int64_t(blockIdx.x) * 64;
    float acc[4][2] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += 16) {
        for (int e = threadIdx.x; e < 16 * 32; e += 256) {
            const int m = e / 16, k = e % 16;
            ws[k][m] = m0 + m < out_channels && k0 + k < depth ? to_float(w[(m0 + m) * depth + k0 + k]) : 0.0f;
        }
        for (int e = threadIdx.x; e < 16 * 64; e += 256) {
            const int k = e / 64, n = e % 64;
            ps[k][n] = n0 + n < columns && k0 + k < depth ? to_float(patches[(k0 + k) * columns + n0 + n]) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i) {
                acc[i][0] = fmaf(ws[k][ty + 8 * i], ps[k][tx], acc[i][0]);
                acc[i][1] = fmaf(ws[k][ty + 8 * i], ps[k][tx + 32], acc[i][1]);
            }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) {
            const int64_t m = m0 + ty + 8 * i, n = n0 + tx + 32 * j;
            if (m >= out_channels || n >= columns) continue;
            const float v = acc[i][j] + to_float(conv_bias[m]);
            y[(n / pixels * out_channels + m) * pixels + n % pixels] = from_float((v > 0.0f ? v : 0.0f) + to_float(bias[m]));
        }
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width, int64_t kernel_size) {
    static scalar_t* patches = nullptr;
    static int64_t capacity = 0;
    const int64_t depth = in_channels * kernel_size * kernel_size;
    const int64_t pixels = (height - kernel_size + 1) * (width - kernel_size + 1);
    const int64_t at_once = std::max<int64_t>(1, std::min<int64_t>(batch_size, (int64_t{64} << 20) / (depth * pixels)));
    if (const int64_t need = at_once * depth * pixels; need > capacity) {
        cudaFree(patches);
        cudaMalloc(&patches, need * sizeof(scalar_t));
        capacity = need;
    }
    for (int64_t first = 0; first < batch_size; first += at_once) {
        const int64_t samples = std::min(at_once, batch_size - first), columns = samples * pixels;
        im2col<<<dim3(unsigned((columns + 255) / 256), unsigned(depth)), 256>>>(
            patches, static_cast<const scalar_t*>(x) + first * in_channels * height * width, samples, in_channels, height, width,
            kernel_size);
        multiply<<<dim3(unsigned((columns + 63) / 64), unsigned((out_channels + 31) / 32)), 256>>>(
            static_cast<scalar_t*>(output) + first * out_channels * pixels, static_cast<const scalar_t*>(conv_weight), patches,
            static_cast<const scalar_t*>(conv_bias), static_cast<const scalar_t*>(bias), out_channels, depth, columns, pixels);
    }
}
