// problem: level1/1
// precision: fp16
// kind: honest
// expects: the plain tiled product, and a wait for it; correct.
// size: small
#include <kernelblaster/kernels/matmul.cuh>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    matmul(out(output), Matrix{in(A), n, 1}, Matrix{in(B), n, 1}, Product{n, n, n});
    check(cudaDeviceSynchronize());
}
