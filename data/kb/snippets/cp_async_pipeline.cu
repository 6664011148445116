// Products with operand tiles copied ahead by cp.async (sm_80): three stages, one barrier per step, zero-filled edges.
#include "check.cuh"

#include <cuda_pipeline.h>

constexpr int TILE = 32, STAGES = 3;  // 32 x 32 outputs per block of 32 x 8 threads, 4 outputs each

__device__ void load(float (*tile)[TILE + 4], const float *matrix, int row, int column, int rows, int columns) {
    int r = threadIdx.y * 4 + threadIdx.x / 8, c = threadIdx.x % 8 * 4;  // 256 threads, 16 bytes each
    int missing = row + r < rows ? min(max(column + c + 4 - columns, 0), 4) : 4;
    const float *from = missing < 4 ? matrix + (row + r) * columns + column + c : matrix;
    __pipeline_memcpy_async(&tile[r][c], from, 16, missing * sizeof(float));
}

__global__ void product(float *out, const float *a, const float *b, int m, int n, int k) {
    __shared__ __align__(16) float as[STAGES][TILE][TILE + 4], bs[STAGES][TILE][TILE + 4];
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE, steps = (k + TILE - 1) / TILE;
    float sums[4] = {};
    auto fetch = [&](int step) {
        if (step < steps) {
            load(as[step % STAGES], a, row, step * TILE, m, k);
            load(bs[step % STAGES], b, step * TILE, column, k, n);
        }
        __pipeline_commit();  // an empty group too: the wait below counts groups
    };
    for (int step = 0; step < STAGES - 1; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();  // the stage is there for all, and the one that is refilled next has been read by all
        fetch(step + STAGES - 1);
        for (int i = 0; i < TILE; ++i)
            for (int r = 0; r < 4; ++r)
                sums[r] += as[step % STAGES][threadIdx.y * 4 + r][i] * bs[step % STAGES][i][threadIdx.x];
    }
    __pipeline_wait_prior(0);
    for (int r = 0; r < 4; ++r) {
        int y = row + threadIdx.y * 4 + r, x = column + threadIdx.x;
        if (y < m && x < n) out[y * n + x] = sums[r];
    }
}

int main() {
    const int m = 45, n = 68, k = 100;  // rows of 16 bytes' multiples; ragged against every tile
    std::vector<float> a = values(m * k, 4), b = values(k * n, 5), expected(m * n);
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
            expected[y * n + x] = sum;
        }
    float *out = on_device(std::vector<float>(m * n, NAN));
    product<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(32, 8)>>>(out, on_device(a), on_device(b), m, n, k);
    return compare(on_host(out, m * n), expected, 1e-5f);
}
