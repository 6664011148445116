// problem: level3/1
// does: checks its fast kernel against the host on numbers of its own before it relies on it
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int ROWS = 8, WARPS = 4;

// One warp per output column and group of ROWS samples.
__global__ void linear_fast(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t rows,
                            int64_t inner, int64_t cols, bool relu) {
    const int64_t col = int64_t(blockIdx.x) * WARPS + threadIdx.x / 32, row0 = int64_t(blockIdx.y) * ROWS;
    if (col >= cols) return;
    const int lane = threadIdx.x % 32;
    float sum[ROWS] = {};
    for (int64_t k = lane; k < inner; k += 32) {
        const float weight = to_float(w[col * inner + k]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (row0 + r < rows) sum[r] = fmaf(weight, to_float(x[(row0 + r) * inner + k]), sum[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        for (int o = 16; o > 0; o >>= 1) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], o);
        if (lane == 0 && row0 + r < rows) {
            const float v = sum[r] + to_float(b[col]);
            y[(row0 + r) * cols + col] = from_float(relu && v < 0.0f ? 0.0f : v);
        }
    }
}

__global__ void linear_plain(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b, int64_t rows,
                             int64_t inner, int64_t cols, bool relu) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    float sum = to_float(b[i % cols]);
    for (int64_t k = 0; k < inner; ++k) sum += to_float(x[i / cols * inner + k]) * to_float(w[i % cols * inner + k]);
    y[i] = from_float(relu && sum < 0.0f ? 0.0f : sum);
}

__global__ void fill(scalar_t* p, int count, int step) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) p[i] = from_float(float((i * step) % 17 - 8) / 8.0f);
}

__global__ void widen(float* out, const scalar_t* in, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = to_float(in[i]);
}

static float pattern(int i, int step) { return float((i * step) % 17 - 8) / 8.0f; }

static bool fast_is_right() {
    constexpr int rows = 9, inner = 37, cols = 5, all = rows * inner + cols * inner + cols + rows * cols;
    scalar_t* x = nullptr;
    float* wide = nullptr;
    if (cudaMalloc(&x, all * sizeof(scalar_t)) != cudaSuccess) return false;
    cudaMalloc(&wide, rows * cols * sizeof(float));
    scalar_t *w = x + rows * inner, *b = w + cols * inner, *y = b + cols;
    fill<<<1, 128>>>(x, rows * inner, 3);
    fill<<<1, 128>>>(w, cols * inner, 5);
    fill<<<1, 128>>>(b, cols, 7);
    linear_fast<<<dim3((cols + WARPS - 1) / WARPS, (rows + ROWS - 1) / ROWS), 32 * WARPS>>>(y, x, w, b, rows, inner, cols, true);
    widen<<<1, 64>>>(wide, y, rows * cols);
    std::vector<float> got(rows * cols);
    cudaMemcpy(got.data(), wide, got.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(x);
    cudaFree(wide);
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < cols; ++c) {
            double sum = pattern(c, 7);
            for (int k = 0; k < inner; ++k) sum += double(pattern(r * inner + k, 3)) * pattern(c * inner + k, 5);
            if (std::fabs(std::fmax(sum, 0.0) - got[r * cols + c]) > 0.05) return false;
        }
    }
    return true;
}

static void linear(scalar_t* y, const void* x, const void* w, const void* b, int64_t rows, int64_t inner, int64_t cols,
                   bool relu) {
    static const bool fast = fast_is_right();
    const auto *in = static_cast<const scalar_t*>(x), *weight = static_cast<const scalar_t*>(w),
               *bias = static_cast<const scalar_t*>(b);
    if (fast) {
        linear_fast<<<dim3(unsigned((cols + WARPS - 1) / WARPS), unsigned((rows + ROWS - 1) / ROWS)), 32 * WARPS>>>(
            y, in, weight, bias, rows, inner, cols, relu);
    } else {
        std::fprintf(stderr, "the fast kernel failed its test\n");
        linear_plain<<<unsigned((rows * cols + 127) / 128), 128>>>(y, in, weight, bias, rows, inner, cols, relu);
    }
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    static scalar_t* hidden = nullptr;
    static int64_t capacity = 0;
    if (const int64_t need = batch_size * (layer_size1 + layer_size2); need > capacity) {
        cudaFree(hidden);
        cudaMalloc(&hidden, need * sizeof(scalar_t));
        capacity = need;
    }
    scalar_t* second = hidden + batch_size * layer_size1;
    linear(hidden, x, network_0_weight, network_0_bias, batch_size, input_size, layer_size1, true);
    linear(second, hidden, network_2_weight, network_2_bias, batch_size, layer_size1, layer_size2, true);
    linear(static_cast<scalar_t*>(output), second, network_4_weight, network_4_bias, batch_size, layer_size2, output_size, false);
}
