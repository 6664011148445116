// problem: level1/1
// does: calls cuBLAS where the run allows it, on the default stream
// emulated: -
// cuda: correct
// size: medium
// libraries: cublas
#include <kernelblaster/scalar.cuh>
#include <cublas_v2.h>

#ifdef KB_FP16
constexpr cudaDataType_t TYPE = CUDA_R_16F;
#elif defined(KB_BF16)
constexpr cudaDataType_t TYPE = CUDA_R_16BF;
#else
constexpr cudaDataType_t TYPE = CUDA_R_32F;
#endif

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    static cublasHandle_t handle = nullptr;
    if (handle == nullptr) cublasCreate(&handle);
    const float one = 1.0f, zero = 0.0f;
    const int m = int(n);
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, m, m, &one, B, TYPE, m, A, TYPE, m, &zero, output, TYPE, m,
                 CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
