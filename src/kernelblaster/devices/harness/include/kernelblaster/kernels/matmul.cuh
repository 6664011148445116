// Matrix products: one output per thread, 16 x 16 tiles staged in shared memory, fp32 sums.
#pragma once
#include <kernelblaster/kernels/epilogue.cuh>

constexpr int TILE = 16;

// A matrix, or a batch of them, in memory: elements from one row, column or matrix to the next. A transposed matrix is
// one whose strides are exchanged, a matrix that all of a batch share has the batch stride 0.
struct Matrix {
    const scalar_t* data;
    int64_t row, column, batch = 0;
    __device__ float at(int64_t sample, int64_t r, int64_t c) const {
        return to_float(data[sample * batch + r * row + c * column]);
    }
};

// rows x columns outputs of each matrix of a batch, row-major; `inner` is the extent that is summed over.
struct Product {
    int64_t rows, columns, inner, batch = 1;
};

// Blocks stride over all tiles of all matrices. Threads of a warp load along the axis that is contiguous in memory.
template <typename Kept, typename Epilogue>
__global__ void matmul_kernel(Kept* output, Matrix a, Matrix b, Product shape, Epilogue epilogue) {
    __shared__ float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int a_row = a.column == 1 ? ty : tx, a_column = a.column == 1 ? tx : ty;
    const int b_row = b.column == 1 ? ty : tx, b_column = b.column == 1 ? tx : ty;
    const int64_t across = (shape.columns + TILE - 1) / TILE, down = (shape.rows + TILE - 1) / TILE;

    for (int64_t tile = blockIdx.x; tile < across * down * shape.batch; tile += gridDim.x) {
        const int64_t sample = tile / (across * down);
        const int64_t row0 = tile / across % down * TILE, column0 = tile % across * TILE;
        float sum = 0.0f;
        for (int64_t k0 = 0; k0 < shape.inner; k0 += TILE) {
            const bool a_inside = row0 + a_row < shape.rows && k0 + a_column < shape.inner;
            const bool b_inside = k0 + b_row < shape.inner && column0 + b_column < shape.columns;
            a_tile[a_row][a_column] = a_inside ? a.at(sample, row0 + a_row, k0 + a_column) : 0.0f;
            b_tile[b_row][b_column] = b_inside ? b.at(sample, k0 + b_row, column0 + b_column) : 0.0f;
            __syncthreads();
            for (int k = 0; k < TILE; ++k) sum += a_tile[ty][k] * b_tile[k][tx];
            __syncthreads();
        }
        const int64_t row = row0 + ty, column = column0 + tx;
        if (row < shape.rows && column < shape.columns) {
            const int64_t index = (sample * shape.rows + row) * shape.columns + column;
            output[index] = kept_as<Kept>(epilogue(sum, index, column));
        }
    }
}

// output = epilogue(a b)
template <typename Kept, typename Epilogue = Plain>
static void matmul(Kept* output, Matrix a, Matrix b, Product shape, Epilogue epilogue = Epilogue()) {
    const int64_t tiles = (shape.columns + TILE - 1) / TILE * ((shape.rows + TILE - 1) / TILE) * shape.batch;
    matmul_kernel<<<blocks_for(tiles, 1), dim3(TILE, TILE)>>>(output, a, b, shape, epilogue);
    check(cudaGetLastError());
}

// output = epilogue(x weight^T), as torch.nn.Linear: x is (rows, in_features), weight (out_features, in_features).
template <typename Kept, typename Epilogue>
static void linear(Kept* output, const scalar_t* x, const scalar_t* weight, int64_t rows, int64_t in_features,
                   int64_t out_features, Epilogue epilogue) {
    matmul(output, Matrix{x, in_features, 1}, Matrix{weight, 1, in_features}, Product{rows, out_features, in_features},
           epilogue);
}
