// problem: level2/1
// does: implicit GEMM on tensor cores: patches are gathered straight into shared memory
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>
#include <mma.h>

using namespace nvcuda::wmma;

constexpr int BM = 64, BN = 64, BK = 32, LD = BK + 8, THREADS = 128;

struct Conv {
    int n, c, k, h, w, taps, oh, ow;
};

// Rows of the product are output channels, columns are output pixels of all samples.
__global__ void __launch_bounds__(THREADS) conv(scalar_t* y, const scalar_t* x, const scalar_t* bias, const scalar_t* weight,
                                                const scalar_t* conv_bias, const Conv p) {
    __shared__ __align__(32) unsigned char bytes[BM * BN * 4 > (BM + BN) * LD * 2 ? BM * BN * 4 : (BM + BN) * LD * 2];
    scalar_t *ws = reinterpret_cast<scalar_t*>(bytes), *xs = ws + BM * LD;
    float* out = reinterpret_cast<float*>(bytes);
    const int depth = p.c * p.taps * p.taps, window = p.taps * p.taps, pixels = p.oh * p.ow;
    const int64_t columns = int64_t(p.n) * pixels, col0 = int64_t(blockIdx.x) * BN;
    const int row0 = blockIdx.y * BM, warp = threadIdx.x / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;

    // This thread gathers for one pixel.
    const int pixel_lane = threadIdx.x % BN, k_lane = threadIdx.x / BN;
    const int64_t column = col0 + pixel_lane;
    const bool inside = column < columns;
    const int sample = inside ? int(column / pixels) : 0, pixel = inside ? int(column % pixels) : 0;
    const scalar_t* corner = x + int64_t(sample) * p.c * p.h * p.w + int64_t(pixel / p.ow) * p.w + pixel % p.ow;

    fragment<accumulator, 16, 16, 16, float> acc[2][2];
    for (auto& pair : acc)
        for (auto& f : pair) fill_fragment(f, 0.0f);
    for (int k0 = 0; k0 < depth; k0 += BK) {
        for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
            const int m = e / BK, k = e % BK;
            ws[m * LD + k] = row0 + m < p.k && k0 + k < depth ? weight[int64_t(row0 + m) * depth + k0 + k] : scalar_t(0.0f);
        }
        for (int k = k_lane; k < BK; k += THREADS / BN) {
            const int at = k0 + k, channel = at / window, tap = at % window;
            xs[pixel_lane * LD + k] =
                inside && at < depth ? corner[(int64_t(channel) * p.h + tap / p.taps) * p.w + tap % p.taps] : scalar_t(0.0f);
        }
        __syncthreads();
        for (int k = 0; k < BK; k += 16) {
            fragment<matrix_a, 16, 16, 16, scalar_t, row_major> a[2];
            fragment<matrix_b, 16, 16, 16, scalar_t, col_major> b[2];
            for (int i = 0; i < 2; ++i) {
                load_matrix_sync(a[i], ws + (wm + 16 * i) * LD + k, LD);
                load_matrix_sync(b[i], xs + (wn + 16 * i) * LD + k, LD);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) store_matrix_sync(out + (wm + 16 * i) * BN + wn + 16 * j, acc[i][j], BN, mem_row_major);
    __syncthreads();
    for (int e = threadIdx.x; e < BM * BN; e += THREADS) {
        const int channel = row0 + e / BN;
        const int64_t c = col0 + e % BN;
        if (channel >= p.k || c >= columns) continue;
        const float v = fmaxf(out[e] + to_float(conv_bias[channel]), 0.0f) + to_float(bias[channel]);
        y[(c / pixels * p.k + channel) * pixels + c % pixels] = from_float(v);
    }
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias, int64_t batch_size,
                               int64_t in_channels, int64_t out_channels, int64_t height, int64_t width, int64_t kernel_size) {
    const Conv p{int(batch_size), int(in_channels), int(out_channels), int(height),
                 int(width),      int(kernel_size), int(height - kernel_size + 1), int(width - kernel_size + 1)};
    const int64_t columns = batch_size * p.oh * p.ow;
    conv<<<dim3(unsigned((columns + BN - 1) / BN), unsigned((out_channels + BM - 1) / BM)), THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(bias),
        static_cast<const scalar_t*>(conv_weight), static_cast<const scalar_t*>(conv_bias), p);
}
