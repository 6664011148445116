// C[b, i, j, k] = sum over l of A[b, i, j, l] B[l, k]: one output per thread, 16 x 16 tiles staged in shared memory.
#include <kernelblaster/kernels/matmul.cuh>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t b, int64_t i, int64_t j, int64_t l,
                               int64_t k) {
    matmul(out(output), Matrix{in(A), l, 1}, Matrix{in(B), k, 1}, Product{b * i * j, k, l});
}
