// Masked prefix sums: one block per row, which scans chunk after chunk and carries the result.
#include <kernelblaster/kernels/scan.cuh>

struct Row {
    scalar_t* output;
    const scalar_t* x;
    const bool* mask;
    int64_t dim;
    __device__ float load(int64_t row, int64_t i) const {
        return mask[row * dim + i] ? to_float(x[row * dim + i]) : 0.0f;
    }
    __device__ void store(int64_t row, int64_t i, float sum) const { output[row * dim + i] = from_float(sum); }
};

void launch_gpu_implementation(void* output, void* x, void* mask, int64_t batch_size, int64_t dim) {
    scan_rows(batch_size, dim, Sum(), Row{out(output), in(x), static_cast<const bool*>(mask), dim});
}
