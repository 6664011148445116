// problem: level1/1
// does: calls cuBLAS on a stream of its own, which it joins with the default stream
// emulated: -
// cuda: correct
// size: medium
// libraries: cublas
#include <kernelblaster/scalar.cuh>
#include <cublas_v2.h>

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    static cublasHandle_t handle = nullptr;
    static cudaStream_t stream = nullptr;
    static cudaEvent_t begin, done;
    if (handle == nullptr) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&begin, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
        cublasCreate(&handle);
        cublasSetStream(handle, stream);
    }
    const float one = 1.0f, zero = 0.0f;
    const int m = int(n);
    cudaEventRecord(begin, 0);
    cudaStreamWaitEvent(stream, begin, 0);
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, m, m, &one, B, CUDA_R_16F, m, A, CUDA_R_16F, m, &zero, output,
                 CUDA_R_16F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaEventRecord(done, stream);
    cudaStreamWaitEvent(0, done, 0);
}
