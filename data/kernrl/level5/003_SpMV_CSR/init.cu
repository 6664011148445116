// Sparse matrix in compressed rows times a vector: one thread per row.
#include <kernelblaster/kernels/elementwise.cuh>

struct RowProduct {
    const scalar_t* values;
    const int32_t *columns_of, *row_starts;
    const scalar_t* x;
    __device__ float operator()(int64_t row) const {
        float sum = 0.0f;
        for (int32_t e = row_starts[row]; e < row_starts[row + 1]; ++e) {
            sum += to_float(values[e]) * to_float(x[columns_of[e]]);
        }
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* values, void* columns_of, void* row_starts, void* x, int64_t rows,
                               int64_t columns, int64_t mean_length) {
    generate(out(output), rows,
             RowProduct{in(values), static_cast<const int32_t*>(columns_of), static_cast<const int32_t*>(row_starts),
                        in(x)});
}
