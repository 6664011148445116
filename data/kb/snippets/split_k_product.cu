// relu(A B^T + bias) on tensor cores with a long sum: blocks share out K, a second kernel adds their fp32 parts in a fixed
// order and applies bias and activation before anything is rounded.
#include "check.cuh"
#include "tile.cuh"

constexpr int TILE = 64, STEP = 32;

// 64 rows of 32 columns of a matrix into shared memory; zeros beyond its edges.
__device__ void load_tile(half *tile, const half *matrix, int row, int rows, int column, int columns) {
    for (int at = threadIdx.x; at < TILE * STEP; at += blockDim.x) {
        int y = row + at / STEP, x = column + at % STEP;
        tile[at / STEP * LD + at % STEP] = y < rows && x < columns ? matrix[size_t(y) * columns + x] : half(0);
    }
}

__global__ void __launch_bounds__(128) multiply_parts(float *parts, const half *a, const half *b, int m, int n, int k, int steps) {
    __shared__ __align__(16) half left[TILE * LD], right[TILE * LD];
    int lane = threadIdx.x % 32, y = threadIdx.x / 64 * 32, x = threadIdx.x / 32 % 2 * 32;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE, begin = blockIdx.z * steps * STEP, end = min(k, begin + steps * STEP);
    float d[2][4][4] = {};
    for (int at = begin; at < end; at += STEP) {
        load_tile(left, a, row, m, at, k);
        load_tile(right, b, column, n, at, k);
        __syncthreads();
        multiply_warp_tile(d, left + y * LD, right + x * LD, lane);
        __syncthreads();
    }
    float *own = parts + size_t(blockIdx.z) * m * n;
    for_each(d, lane, [&](int i, int j, float value) {
        i += row + y, j += column + x;
        if (i < m && j < n) own[size_t(i) * n + j] = value;
    });
}

__global__ void add_parts(half *out, const float *parts, const float *bias, int m, int n, int splits) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m * n) return;
    float sum = bias[at % n];
    for (int z = 0; z < splits; ++z) sum += parts[size_t(z) * m * n + at];
    out[at] = half(fmaxf(sum, 0.0f));
}

int main() {
    const int m = 70, n = 90, k = 1000, splits = 4;  // neither tiles nor splits divide them
    std::vector<float> left = values(m * k, 1), right = values(n * k, 2), bias = values(n, 3), expected(m * n);
    std::vector<half> a(left.begin(), left.end()), b(right.begin(), right.end());
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            double sum = bias[x];
            for (int i = 0; i < k; ++i) sum += float(a[y * k + i]) * float(b[x * k + i]);
            expected[y * n + x] = std::fmax(sum, 0.0);
        }
    half *out = on_device(std::vector<half>(m * n, half(NAN)));
    float *parts = on_device(std::vector<float>(size_t(splits) * m * n, NAN));
    int steps = ((k + STEP - 1) / STEP + splits - 1) / splits;
    multiply_parts<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE, splits), 128>>>(parts, on_device(a), on_device(b), m, n, k, steps);
    add_parts<<<(m * n + 255) / 256, 256>>>(out, parts, on_device(bias), m, n, splits);
    return compare(on_host(out, m * n), expected, 4e-3f);
}
