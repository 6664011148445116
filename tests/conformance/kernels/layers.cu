// Convolutions and pooling as networks have them: many channels, one-dimensional, transposed, by points, global.
// Inputs are multiples of 1/64, so that sums are exact in fp32.
#include "conformance.hpp"

using conformance::blocks_for;

constexpr int kSteps = 64;

// 3 x 3 over (channels, height, width) without padding; a thread per output.
__global__ void conv3_direct(const float* x, const float* w, float* y, int inputs, int outputs, int height, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, rows = height - 2, columns = width - 2;
    if (i >= outputs * rows * columns) return;
    const int column = i % columns, row = i / columns % rows, output = i / (columns * rows);
    float sum = 0.0f;
    for (int c = 0; c < inputs; ++c)
        for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s)
                sum += x[(c * height + row + r) * width + column + s] * w[((output * inputs + c) * 3 + r) * 3 + s];
    y[i] = sum;
}
// A block computes 16 x 16 positions of four outputs, input tiles and weights in shared memory.
__global__ void conv3_tiles(const float* x, const float* w, float* y, int inputs, int outputs, int height, int width) {
    __shared__ float tile[18][19], weights[4][9];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx, rows = height - 2, columns = width - 2;
    const int column = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty, first = blockIdx.z * 4;
    float sums[4] = {};
    for (int c = 0; c < inputs; ++c) {
        for (int e = t; e < 18 * 18; e += 256) {
            const int r = blockIdx.y * 16 + e / 18, s = blockIdx.x * 16 + e % 18;
            tile[e / 18][e % 18] = r < height && s < width ? x[(c * height + r) * width + s] : 0.0f;
        }
        if (t < 36) weights[t / 9][t % 9] = w[((first + t / 9) * inputs + c) * 9 + t % 9];
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 3; ++r)
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                const float v = tile[ty + r][tx + s];
#pragma unroll
                for (int o = 0; o < 4; ++o) sums[o] = fmaf(v, weights[o][r * 3 + s], sums[o]);
            }
        __syncthreads();
    }
    if (row < rows && column < columns)
        for (int o = 0; o < 4; ++o) y[((first + o) * rows + row) * columns + column] = sums[o];
}

CASE(conv3_many_channels_direct) {
    const int inputs = 32, outputs = 32, size = 66;
    const auto x = run.values<float>(inputs * size * size, 91, kSteps), w = run.values<float>(inputs * outputs * 9, 92, kSteps);
    const int n = outputs * (size - 2) * (size - 2);
    const auto y = run.empty<float>(n);
    run.call([=] { conv3_direct<<<blocks_for(n, 256), 256>>>(x, w, y, inputs, outputs, size, size); });
    run.output("y", y, n);
}
CASE(conv3_many_channels_tiles) {
    const int inputs = 32, outputs = 32, size = 66;
    const auto x = run.values<float>(inputs * size * size, 91, kSteps), w = run.values<float>(inputs * outputs * 9, 92, kSteps);
    const int n = outputs * (size - 2) * (size - 2);
    const auto y = run.empty<float>(n);
    run.call([=] { conv3_tiles<<<dim3(4, 4, outputs / 4), dim3(16, 16)>>>(x, w, y, inputs, outputs, size, size); });
    run.output("y", y, n);
}

// One dimension, 9 taps: from memory, or from a tile with the taps in constant memory.
__constant__ float taps[9];
__global__ void conv1_direct(const float* x, const float* w, float* y, int length, int outputs) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= outputs) return;
    float sum = 0.0f;
    for (int k = 0; k < 9; ++k) sum += x[blockIdx.y * length + i + k] * w[k];
    y[blockIdx.y * outputs + i] = sum;
}
__global__ void conv1_tile(const float* x, float* y, int length, int outputs) {
    __shared__ float tile[264];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    for (int e = t; e < 264; e += 256) tile[e] = blockIdx.x * 256 + e < length ? x[blockIdx.y * length + blockIdx.x * 256 + e] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 9; ++k) sum += tile[t + k] * taps[k];
    if (i < outputs) y[blockIdx.y * outputs + i] = sum;
}

CASE(conv1_direct) {
    const int rows = 64, length = 50'008, outputs = length - 8;
    const auto x = run.values<float>(rows * length, 93, kSteps), w = run.values<float>(9, 94, kSteps), y = run.empty<float>(rows * outputs);
    run.call([=] { conv1_direct<<<dim3(blocks_for(outputs, 256), rows), 256>>>(x, w, y, length, outputs); });
    run.output("y", y, rows * outputs);
}
CASE(conv1_tile_constant) {
    const int rows = 64, length = 50'008, outputs = length - 8;
    const auto x = run.values<float>(rows * length, 93, kSteps), w = run.values<float>(9, 94, kSteps), y = run.empty<float>(rows * outputs);
    conformance::check(cudaMemcpyToSymbol(taps, w, sizeof taps, 0, cudaMemcpyDeviceToDevice), "copying the taps");
    run.call([=] { conv1_tile<<<dim3(blocks_for(outputs, 256), rows), 256>>>(x, y, length, outputs); });
    run.output("y", y, rows * outputs);
}

// 1 x 1: a product over channels at each position; four outputs per thread, or one.
template <int Outputs>
__global__ void conv_points(const float* x, const float* w, float* y, int inputs, int positions) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * Outputs;
    if (p >= positions) return;
    float sums[Outputs] = {};
    for (int c = 0; c < inputs; ++c) {
        const float v = x[c * positions + p];
#pragma unroll
        for (int o = 0; o < Outputs; ++o) sums[o] = fmaf(v, w[(first + o) * inputs + c], sums[o]);
    }
    for (int o = 0; o < Outputs; ++o) y[(first + o) * positions + p] = sums[o];
}

template <int Outputs>
void points_case(conformance::Run& run) {
    const int inputs = 64, outputs = 32, positions = 20'000;
    const auto x = run.values<float>(inputs * positions, 95, kSteps), w = run.values<float>(inputs * outputs, 96, kSteps);
    const auto y = run.empty<float>(outputs * positions);
    run.call([=] { conv_points<Outputs><<<dim3(blocks_for(positions, 128), outputs / Outputs), 128>>>(x, w, y, inputs, positions); });
    run.output("y", y, outputs * positions);
}

CASE(conv_points_one_output) { points_case<1>(run); }
CASE(conv_points_eight_outputs) { points_case<8>(run); }

// Transposed convolution, stride 2, 4 x 4: each output gathers, or each input scatters with atomics.
__global__ void transposed_gather(const float* x, const float* w, float* y, int channels, int size) {
    const int out = 2 * size, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= out * out) return;
    const int row = i / out, column = i % out;
    for (int o = 0; o < 4; ++o) {
        float sum = 0.0f;
        for (int c = 0; c < channels; ++c)
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) {
                    const int yy = row + 1 - r, xx = column + 1 - s;
                    if (yy < 0 || xx < 0 || yy % 2 != 0 || xx % 2 != 0 || yy / 2 >= size || xx / 2 >= size) continue;
                    sum += x[(c * size + yy / 2) * size + xx / 2] * w[((c * 4 + o) * 4 + r) * 4 + s];
                }
        y[(o * out + row) * out + column] = sum;
    }
}
__global__ void transposed_scatter(const float* x, const float* w, float* y, int channels, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, out = 2 * size;
    if (i >= channels * size * size) return;
    const int column = i % size, row = i / size % size, c = i / (size * size);
    const float v = x[i];
    for (int o = 0; o < 4; ++o)
        for (int r = 0; r < 4; ++r)
            for (int s = 0; s < 4; ++s) {
                const int yy = 2 * row + r - 1, xx = 2 * column + s - 1;
                if (yy >= 0 && xx >= 0 && yy < out && xx < out)
                    atomicAdd(y + (o * out + yy) * out + xx, v * w[((c * 4 + o) * 4 + r) * 4 + s]);
            }
}

void transposed_case(conformance::Run& run, bool gather) {
    const int channels = 8, size = 128, n = 4 * 4 * size * size;
    const auto x = run.values<float>(channels * size * size, 97, kSteps), w = run.values<float>(channels * 64, 98, kSteps);
    const auto y = run.empty<float>(n);
    run.before([=] { cudaMemsetAsync(y, 0, n * sizeof(float)); });
    if (gather) run.call([=] { transposed_gather<<<blocks_for(4 * size * size, 128), 128>>>(x, w, y, channels, size); });
    else run.call([=] { transposed_scatter<<<blocks_for(channels * size * size, 128), 128>>>(x, w, y, channels, size); });
    run.output("y", y, n);
}

CASE(conv_transposed_gather) { transposed_case(run, true); }
CASE(conv_transposed_scatter) { transposed_case(run, false); }

// Pooling: 3 x 3 with stride 2, the mean of all positions, and 1-d maxima over 8.
__global__ void max_pool3(const float* x, float* y, int channels, int size, int out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= channels * out * out) return;
    const int column = i % out, row = i / out % out, c = i / (out * out);
    float most = -INFINITY;
    for (int r = 0; r < 3; ++r)
        for (int s = 0; s < 3; ++s) most = fmaxf(most, x[(c * size + 2 * row + r) * size + 2 * column + s]);
    y[i] = most;
}
__global__ void mean_of_positions_thread(const float* x, float* y, int channels, int positions) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float sum = 0.0f;
    for (int k = 0; k < positions; ++k) sum += x[c * positions + k];
    y[c] = sum / positions;
}
__global__ void mean_of_positions_warp(const float* x, float* y, int channels, int positions) {
    const int c = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (c >= channels) return;
    float sum = 0.0f;
    for (int k = lane; k < positions; k += 32) sum += x[c * positions + k];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) y[c] = sum / positions;
}
__global__ void max_pool_line(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float most = x[i * 8];
    for (int k = 1; k < 8; ++k) most = fmaxf(most, x[i * 8 + k]);
    y[i] = most;
}
__global__ void max_pool_line_wide(const float4* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 a = x[i * 2], b = x[i * 2 + 1];
    y[i] = fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
}

CASE(max_pool3_stride_2) {
    const int channels = 256, size = 113, out = 56;
    const auto x = run.values<float>(channels * size * size, 99), y = run.empty<float>(channels * out * out);
    run.call([=] { max_pool3<<<blocks_for(channels * out * out, 256), 256>>>(x, y, channels, size, out); });
    run.output("y", y, channels * out * out);
}
CASE(global_mean_thread) {
    const int channels = 16'384, positions = 196;
    const auto x = run.values<float>(channels * positions, 100, kSteps), y = run.empty<float>(channels);
    run.call([=] { mean_of_positions_thread<<<blocks_for(channels, 128), 128>>>(x, y, channels, positions); });
    run.output("y", y, channels);
}
CASE(global_mean_warp) {
    const int channels = 16'384, positions = 196;
    const auto x = run.values<float>(channels * positions, 100, kSteps), y = run.empty<float>(channels);
    run.call([=] { mean_of_positions_warp<<<blocks_for(channels, 4), 128>>>(x, y, channels, positions); });
    run.output("y", y, channels);
}
CASE(max_pool_line_scalar) {
    const int n = 800'000;
    const auto x = run.values<float>(8 * n, 101), y = run.empty<float>(n);
    run.call([=] { max_pool_line<<<blocks_for(n, 256), 256>>>(x, y, n); });
    run.output("y", y, n);
}
CASE(max_pool_line_float4) {
    const int n = 800'000;
    const auto x = run.values<float>(8 * n, 101), y = run.empty<float>(n);
    run.call([=] { max_pool_line_wide<<<blocks_for(n, 256), 256>>>((const float4*)x, y, n); });
    run.output("y", y, n);
}

// Bilinear enlargement, and a product of neighbours in a map of bytes.
__global__ void enlarge(const float* x, float* y, int channels, int size, int out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= channels * out * out) return;
    const int column = i % out, row = i / out % out, c = i / (out * out);
    const float v = row * static_cast<float>(size - 1) / (out - 1), u = column * static_cast<float>(size - 1) / (out - 1);
    const int y0 = min(static_cast<int>(v), size - 2), x0 = min(static_cast<int>(u), size - 2);
    const float fy = v - y0, fx = u - x0;
    const float* in = x + (c * size + y0) * size + x0;
    y[i] = (in[0] * (1.0f - fx) + in[1] * fx) * (1.0f - fy) + (in[size] * (1.0f - fx) + in[size + 1] * fx) * fy;
}

CASE(enlarge_bilinear) {
    const int channels = 48, size = 112, out = 224;
    const auto x = run.values<float>(channels * size * size, 102), y = run.empty<float>(channels * out * out);
    run.call([=] { enlarge<<<blocks_for(channels * out * out, 256), 256>>>(x, y, channels, size, out); });
    run.output("y", y, channels * out * out, 4096);
}

CONFORMANCE_MAIN
