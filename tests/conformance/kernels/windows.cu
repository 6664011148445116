// Convolutions, pooling and stencils: direct, through shared memory, as a product, marching along an axis.
// Inputs are multiples of 1/64 and weights of 1/16: sums are exact.
#include "conformance.hpp"

using conformance::blocks_for;

struct Shape {
    int batch, channels, height, width, filters, size;
    int out_height() const { return height - size + 1; }
    int out_width() const { return width - size + 1; }
};
constexpr Shape kShape{3, 15, 67, 71, 30, 3};

__device__ int out_h(const Shape& s) { return s.height - s.size + 1; }
__device__ int out_w(const Shape& s) { return s.width - s.size + 1; }

__global__ void conv_direct(const float* x, const float* w, float* y, Shape s) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, oh = out_h(s), ow = out_w(s);
    if (i >= s.batch * s.filters * oh * ow) return;
    const int column = i % ow, row = i / ow % oh, f = i / (ow * oh) % s.filters, b = i / (ow * oh * s.filters);
    float sum = 0.0f;
    for (int c = 0; c < s.channels; ++c)
        for (int p = 0; p < s.size; ++p)
            for (int q = 0; q < s.size; ++q)
                sum += x[((b * s.channels + c) * s.height + row + p) * s.width + column + q] *
                       w[((f * s.channels + c) * s.size + p) * s.size + q];
    y[i] = sum;
}

// A block makes 16 x 16 positions of 10 filters; a channel's patch and weights pass through shared memory.
__global__ void conv_tiled(const float* x, const float* w, float* y, Shape s) {
    __shared__ float patch[18][18 + 1], weights[10][9];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx, oh = out_h(s), ow = out_w(s);
    const int column0 = blockIdx.x * 16, row0 = blockIdx.y * 16, groups = s.filters / 10;
    const int b = blockIdx.z / groups, f0 = blockIdx.z % groups * 10;
    float sum[10] = {};
    for (int c = 0; c < s.channels; ++c) {
        for (int e = t; e < 18 * 18; e += 256) {
            const int row = row0 + e / 18, column = column0 + e % 18;
            patch[e / 18][e % 18] = row < s.height && column < s.width
                                        ? x[((b * s.channels + c) * s.height + row) * s.width + column]
                                        : 0.0f;
        }
        if (t < 90) weights[t / 9][t % 9] = w[((f0 + t / 9) * s.channels + c) * 9 + t % 9];
        __syncthreads();
#pragma unroll
        for (int p = 0; p < 3; ++p)
#pragma unroll
            for (int q = 0; q < 3; ++q) {
                const float value = patch[ty + p][tx + q];
#pragma unroll
                for (int f = 0; f < 10; ++f) sum[f] += value * weights[f][p * 3 + q];
            }
        __syncthreads();
    }
    const int row = row0 + ty, column = column0 + tx;
    if (row < oh && column < ow)
        for (int f = 0; f < 10; ++f) y[((b * s.filters + f0 + f) * oh + row) * ow + column] = sum[f];
}

// (filters) x (channels * 9) times (channels * 9) x (positions), the right matrix gathered while it is loaded.
__global__ void conv_as_product(const float* x, const float* w, float* y, Shape s) {
    __shared__ float left[32][16 + 1], right[16][64];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16, oh = out_h(s), ow = out_w(s);
    const int positions = s.batch * oh * ow, depth = s.channels * 9, position0 = blockIdx.x * 64;
    float sum[2][4] = {};
    for (int step = 0; step < depth; step += 16) {
        for (int e = t; e < 32 * 16; e += 256) {
            const int f = e / 16, d = step + e % 16;
            left[f][e % 16] = f < s.filters && d < depth ? w[f * depth + d] : 0.0f;
        }
        for (int e = t; e < 16 * 64; e += 256) {
            const int d = step + e / 64, at = position0 + e % 64;
            float value = 0.0f;
            if (d < depth && at < positions) {
                const int b = at / (oh * ow), row = at / ow % oh, column = at % ow, c = d / 9, p = d % 9 / 3, q = d % 3;
                value = x[((b * s.channels + c) * s.height + row + p) * s.width + column + q];
            }
            right[e / 64][e % 64] = value;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; ++d)
            for (int r = 0; r < 2; ++r)
                for (int k = 0; k < 4; ++k) sum[r][k] += left[ty * 2 + r][d] * right[d][tx + 16 * k];
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int k = 0; k < 4; ++k) {
            const int f = ty * 2 + r, at = position0 + tx + 16 * k;
            if (f < s.filters && at < positions)
                y[((at / (oh * ow) * s.filters + f) * oh + at / ow % oh) * ow + at % ow] = sum[r][k];
        }
}

template <class Launch>
void conv_case(conformance::Run& run, Launch launch) {
    const Shape s = kShape;
    const size_t outputs = static_cast<size_t>(s.batch) * s.filters * s.out_height() * s.out_width();
    const auto x = run.values<float>(s.batch * s.channels * s.height * s.width, 37, 64);
    const auto w = run.values<float>(s.filters * s.channels * 9, 38, 16);
    const auto y = run.empty<float>(outputs);
    run.call([=] { launch(x, w, y, static_cast<unsigned>(outputs)); });
    run.output("y", y, outputs);
}

CASE(conv_direct) {
    conv_case(run, [](const float* x, const float* w, float* y, unsigned outputs) {
        conv_direct<<<blocks_for(outputs, 256), 256>>>(x, w, y, kShape);
    });
}
CASE(conv_shared_tile) {
    conv_case(run, [](const float* x, const float* w, float* y, unsigned) {
        const dim3 grid(blocks_for(kShape.out_width(), 16), blocks_for(kShape.out_height(), 16), kShape.batch * 3);
        conv_tiled<<<grid, dim3(16, 16)>>>(x, w, y, kShape);
    });
}
CASE(conv_implicit_product) {
    conv_case(run, [](const float* x, const float* w, float* y, unsigned outputs) {
        conv_as_product<<<blocks_for(outputs / kShape.filters, 64), 256>>>(x, w, y, kShape);
    });
}

__global__ void depthwise(const float* x, const float* w, float* y, int planes, int height, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * height * width) return;
    const int column = i % width, row = i / width % height, plane = i / (width * height);
    float sum = 0.0f;
    for (int p = -1; p <= 1; ++p)
        for (int q = -1; q <= 1; ++q)
            if (row + p >= 0 && row + p < height && column + q >= 0 && column + q < width)
                sum += x[i + p * width + q] * w[plane % 32 * 9 + (p + 1) * 3 + q + 1];
    y[i] = sum;
}

CASE(conv_depthwise) {
    const int planes = 288, height = 113, width = 119;
    const auto x = run.values<float>(planes * height * width, 37, 64), w = run.values<float>(32 * 9, 38, 16);
    const auto y = run.empty<float>(planes * height * width);
    run.call([=] { depthwise<<<blocks_for(planes * height * width, 256), 256>>>(x, w, y, planes, height, width); });
    run.output("y", y, planes * height * width);
}

template <bool Largest>
__global__ void pool(const float* x, float* y, int planes, int height, int width, int window, int stride) {
    const int oh = (height - window) / stride + 1, ow = (width - window) / stride + 1;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * oh * ow) return;
    const int column = i % ow * stride, row = i / ow % oh * stride, plane = i / (ow * oh);
    float value = Largest ? -INFINITY : 0.0f;
    for (int p = 0; p < window; ++p)
        for (int q = 0; q < window; ++q) {
            const float one = x[(plane * height + row + p) * width + column + q];
            value = Largest ? fmaxf(value, one) : value + one;
        }
    y[i] = Largest ? value : value / static_cast<float>(window * window);
}

// Windows of two by two: a thread reads two rows of four and writes two results.
__global__ void pool_pairs(const float4* x, float2* y, int planes, int height, int width4) {
    const int oh = height / 2, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * oh * width4) return;
    const int column = i % width4, row = i / width4 % oh, plane = i / (width4 * oh);
    const float4 a = x[(plane * height + 2 * row) * width4 + column], b = x[(plane * height + 2 * row + 1) * width4 + column];
    y[i] = make_float2(fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y)), fmaxf(fmaxf(a.z, a.w), fmaxf(b.z, b.w)));
}

CASE(max_pool_direct) {
    const int planes = 400, height = 150, width = 140, outputs = planes * 75 * 70;
    const auto x = run.values<float>(planes * height * width, 39);
    const auto y = run.empty<float>(outputs);
    run.call([=] { pool<true><<<blocks_for(outputs, 256), 256>>>(x, y, planes, height, width, 2, 2); });
    run.output("y", y, outputs);
}
CASE(max_pool_float4) {
    const int planes = 400, height = 150, width = 140, outputs = planes * 75 * 70;
    const auto x = run.values<float>(planes * height * width, 39);
    const auto y = run.empty<float>(outputs);
    run.call([=] {
        pool_pairs<<<blocks_for(outputs / 2, 256), 256>>>((const float4*)x, (float2*)y, planes, height, width / 4);
    });
    run.output("y", y, outputs);
}
CASE(average_pool_overlapping) {
    const int planes = 480, height = 131, width = 129;
    const auto x = run.values<float>(planes * height * width, 39);
    const int outputs = planes * ((height - 5) / 3 + 1) * ((width - 5) / 3 + 1);
    const auto y = run.empty<float>(outputs);
    run.call([=] { pool<false><<<blocks_for(outputs, 128), 128>>>(x, y, planes, height, width, 5, 3); });
    run.output("y", y, outputs);
}

__global__ void stencil_2d(const float* x, float* y, int rows, int columns) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y, at = row * columns + column;
    if (row >= rows || column >= columns) return;
    const bool inside = row > 0 && column > 0 && row + 1 < rows && column + 1 < columns;
    y[at] = inside ? 0.5f * x[at] + 0.125f * (x[at - 1] + x[at + 1] + x[at - columns] + x[at + columns]) : x[at];
}

__global__ void stencil_2d_shared(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[18][34];
    const int column0 = blockIdx.x * 32 - 1, row0 = blockIdx.y * 16 - 1, t = threadIdx.y * 32 + threadIdx.x;
    for (int e = t; e < 18 * 34; e += 256) {
        const int row = row0 + e / 34, column = column0 + e % 34;
        const bool inside = row >= 0 && column >= 0 && row < rows && column < columns;
        tile[e / 34][e % 34] = inside ? x[row * columns + column] : 0.0f;
    }
    __syncthreads();
    for (int k = threadIdx.y; k < 16; k += 8) {
        const int row = row0 + 1 + k, column = column0 + 1 + threadIdx.x, a = k + 1, b = threadIdx.x + 1;
        if (row >= rows || column >= columns) continue;
        const bool inside = row > 0 && column > 0 && row + 1 < rows && column + 1 < columns;
        y[row * columns + column] =
            inside ? 0.5f * tile[a][b] + 0.125f * (tile[a][b - 1] + tile[a][b + 1] + tile[a - 1][b] + tile[a + 1][b])
                   : tile[a][b];
    }
}

CASE(stencil_2d_direct) {
    const int rows = 2951, columns = 2503;
    const auto x = run.values<float>(rows * columns, 41);
    const auto y = run.empty<float>(rows * columns);
    run.call([=] {
        stencil_2d<<<dim3(blocks_for(columns, 32), blocks_for(rows, 8)), dim3(32, 8)>>>(x, y, rows, columns);
    });
    run.output("y", y, rows * columns);
}
CASE(stencil_2d_shared) {
    const int rows = 2951, columns = 2503;
    const auto x = run.values<float>(rows * columns, 41);
    const auto y = run.empty<float>(rows * columns);
    run.call([=] {
        stencil_2d_shared<<<dim3(blocks_for(columns, 32), blocks_for(rows, 16)), dim3(32, 8)>>>(x, y, rows, columns);
    });
    run.output("y", y, rows * columns);
}

__global__ void stencil_3d(const float* x, float* y, int nz, int ny, int nx) {
    const int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y, k = blockIdx.z;
    if (i >= nx || j >= ny) return;
    const int at = (k * ny + j) * nx + i;
    const bool inside = i > 0 && j > 0 && k > 0 && i + 1 < nx && j + 1 < ny && k + 1 < nz;
    y[at] = inside ? 0.25f * x[at] + 0.125f * (x[at - 1] + x[at + 1] + x[at - nx] + x[at + nx] + x[at - nx * ny] + x[at + nx * ny])
                   : x[at];
}

// Marches along z with the values above and below in registers.
__global__ void stencil_3d_march(const float* x, float* y, int nz, int ny, int nx, int depth) {
    const int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y, first = blockIdx.z * depth;
    if (i >= nx || j >= ny) return;
    const int plane = nx * ny, last = min(first + depth, nz);
    const bool rim = i == 0 || j == 0 || i + 1 == nx || j + 1 == ny;
    int at = first * plane + j * nx + i;
    float below = first > 0 ? x[at - plane] : 0.0f, here = x[at];
    for (int k = first; k < last; ++k, at += plane) {
        const float above = k + 1 < nz ? x[at + plane] : 0.0f;
        y[at] = rim || k == 0 || k + 1 == nz
                    ? here
                    : 0.25f * here + 0.125f * (x[at - 1] + x[at + 1] + x[at - nx] + x[at + nx] + below + above);
        below = here;
        here = above;
    }
}

CASE(stencil_3d_direct) {
    const int nz = 167, ny = 190, nx = 250;
    const auto x = run.values<float>(nz * ny * nx, 43);
    const auto y = run.empty<float>(nz * ny * nx);
    run.call([=] { stencil_3d<<<dim3(blocks_for(nx, 32), blocks_for(ny, 8), nz), dim3(32, 8)>>>(x, y, nz, ny, nx); });
    run.output("y", y, nz * ny * nx);
}
CASE(stencil_3d_march) {
    const int nz = 167, ny = 190, nx = 250, depth = 16;
    const auto x = run.values<float>(nz * ny * nx, 43);
    const auto y = run.empty<float>(nz * ny * nx);
    run.call([=] {
        stencil_3d_march<<<dim3(blocks_for(nx, 32), blocks_for(ny, 8), blocks_for(nz, depth)), dim3(32, 8)>>>(
            x, y, nz, ny, nx, depth);
    });
    run.output("y", y, nz * ny * nx);
}

CONFORMANCE_MAIN
