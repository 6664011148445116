// C = A B of lower triangular matrices: one output per thread, which sums what can differ from zero.
#include <kernelblaster/kernels/elementwise.cuh>

struct TriangularProduct {
    const scalar_t *A, *B;
    int64_t n;
    __device__ float operator()(int64_t index) const {
        const int64_t row = index / n, column = index % n;
        float sum = 0.0f;
        for (int64_t k = column; k <= row; ++k) sum += to_float(A[row * n + k]) * to_float(B[k * n + column]);
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    generate(out(output), n * n, TriangularProduct{in(A), in(B), n});
}
