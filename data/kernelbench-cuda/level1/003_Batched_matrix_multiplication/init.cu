// C = A B for each pair of matrices: one output per thread, 16 x 16 tiles staged in shared memory.
#include <kernelblaster/kernels/matmul.cuh>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t batch_size, int64_t m, int64_t k, int64_t n) {
    matmul(out(output), Matrix{in(A), k, 1, m * k}, Matrix{in(B), n, 1, k * n}, Product{m, n, k, batch_size});
}
