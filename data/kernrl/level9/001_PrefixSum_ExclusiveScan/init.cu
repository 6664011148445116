// Exclusive prefix sums: one block per row, which scans chunk after chunk and carries the result.
#include <kernelblaster/kernels/scan.cuh>

// Each sum goes to the next element; the first element is zero.
struct Row {
    float* output;
    const float* x;
    int64_t length;
    __device__ float load(int64_t row, int64_t i) const { return x[row * length + i]; }
    __device__ void store(int64_t row, int64_t i, float sum) const {
        if (i == 0) output[row * length] = 0.0f;
        if (i + 1 < length) output[row * length + i + 1] = sum;
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t rows, int64_t length) {
    scan_rows(rows, length, Sum(), Row{out(output), in(x), length});
}
