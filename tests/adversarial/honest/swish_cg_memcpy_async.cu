// problem: level2/59
// does: cooperative_groups::memcpy_async and wait_prior, two buffers of whole rows of a tile
// emulated: correct
// cuda: correct
// precision: bf16
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

constexpr int ROWS = 16, COLS = 32, DEPTH = 64;

__global__ void __launch_bounds__(128) swish(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* bias, int64_t rows,
                                             int64_t inner, int64_t cols, float factor) {
    __shared__ alignas(16) scalar_t xs[2][ROWS][DEPTH], ws[2][COLS][DEPTH];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const int64_t row0 = int64_t(blockIdx.y) * ROWS, col0 = int64_t(blockIdx.x) * COLS;
    const int64_t steps = (inner + DEPTH - 1) / DEPTH;

    // A warp copies whole rows; rows that do not exist and ends of rows are never read.
    const auto fetch = [&](int64_t step) {
        const int64_t k0 = step * DEPTH;
        const size_t bytes = size_t(inner - k0 < DEPTH ? inner - k0 : DEPTH) * sizeof(scalar_t);
        for (int r = warp.meta_group_rank(); r < ROWS + COLS; r += warp.meta_group_size()) {
            if (r < ROWS) {
                if (row0 + r < rows) cg::memcpy_async(warp, xs[step % 2][r], x + (row0 + r) * inner + k0, bytes);
            } else if (col0 + r - ROWS < cols) {
                cg::memcpy_async(warp, ws[step % 2][r - ROWS], w + (col0 + r - ROWS) * inner + k0, bytes);
            }
        }
    };

    float sum[4] = {};
    const int col = threadIdx.x % COLS, band = threadIdx.x / COLS;
    fetch(0);
    for (int64_t step = 0; step < steps; ++step) {
        cg::wait(warp);
        block.sync();
        if (step + 1 < steps) fetch(step + 1);
        const int deep = int(inner - step * DEPTH < DEPTH ? inner - step * DEPTH : DEPTH);
        if (col0 + col < cols) {
            for (int k = 0; k < deep; ++k) {
                const float weight = to_float(ws[step % 2][col][k]);
                for (int i = 0; i < 4; ++i)
                    if (row0 + band + 4 * i < rows) sum[i] = fmaf(to_float(xs[step % 2][band + 4 * i][k]), weight, sum[i]);
            }
        }
    }
    for (int i = 0; i < 4; ++i) {
        const int64_t row = row0 + band + 4 * i;
        if (row >= rows || col0 + col >= cols) continue;
        const float v = sum[i] + to_float(bias[col0 + col]);
        y[row * cols + col0 + col] = from_float(v / (1.0f + expf(-v)) * factor);
    }
}

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scaling_factor) {
    swish<<<dim3(unsigned((out_features + COLS - 1) / COLS), unsigned((batch_size + ROWS - 1) / ROWS)), 128>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(matmul_weight),
        static_cast<const scalar_t*>(matmul_bias), batch_size, in_features, out_features, scaling_factor);
}
