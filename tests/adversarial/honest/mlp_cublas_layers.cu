// problem: level3/1
// does: cuBLAS for the products, bias and rectifier in a kernel, cuBLAS' workspace set by hand
// emulated: -
// cuda: correct
// size: medium
// libraries: cublas
#include <cublas_v2.h>
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <stdexcept>

class Handle {
  public:
    Handle() {
        if (cublasCreate(&handle_) != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("cublasCreate failed");
        cudaMalloc(&workspace_, kBytes);
        cublasSetWorkspace(handle_, workspace_, kBytes);
        cublasSetMathMode(handle_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    }
    operator cublasHandle_t() const { return handle_; }

  private:
    static constexpr size_t kBytes = size_t{32} << 20;
    cublasHandle_t handle_ = nullptr;
    void* workspace_ = nullptr;
};

__global__ void add_bias(scalar_t* y, const float* sums, const scalar_t* bias, int64_t count, int64_t cols, bool relu) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = sums[i] + to_float(bias[i % cols]);
    y[i] = from_float(relu ? fmaxf(v, 0.0f) : v);
}

static void linear(cublasHandle_t handle, scalar_t* y, float* sums, const void* x, const void* w, const void* b, int64_t rows,
                   int64_t inner, int64_t cols, bool relu) {
#if defined(KB_FP16)
    constexpr cudaDataType_t type = CUDA_R_16F;
#elif defined(KB_BF16)
    constexpr cudaDataType_t type = CUDA_R_16BF;
#else
    constexpr cudaDataType_t type = CUDA_R_32F;
#endif
    const float one = 1.0f, zero = 0.0f;
    const cublasStatus_t status =
        cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, int(cols), int(rows), int(inner), &one, w, type, int(inner), x, type, int(inner),
                     &zero, sums, CUDA_R_32F, int(cols), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) std::fprintf(stderr, "cublasGemmEx: %s\n", cublasGetStatusString(status));
    add_bias<<<unsigned((rows * cols + 255) / 256), 256>>>(y, sums, static_cast<const scalar_t*>(b), rows * cols, cols, relu);
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias, void* network_2_weight,
                               void* network_2_bias, void* network_4_weight, void* network_4_bias, int64_t batch_size,
                               int64_t input_size, int64_t layer_size1, int64_t layer_size2, int64_t output_size) {
    static const Handle handle;
    static char* buffer = nullptr;
    static int64_t held = 0;
    int64_t widest = layer_size1 > layer_size2 ? layer_size1 : layer_size2;
    widest = widest > output_size ? widest : output_size;
    const int64_t sums_bytes = batch_size * widest * int64_t(sizeof(float));
    const int64_t hidden_bytes = (batch_size * widest * int64_t(sizeof(scalar_t)) + 255) / 256 * 256;
    if (const int64_t need = sums_bytes + 2 * hidden_bytes + 256; need > held) {
        cudaFree(buffer);
        cudaMalloc(&buffer, need);
        held = need;
    }
    auto* first = reinterpret_cast<scalar_t*>(buffer);
    auto* second = reinterpret_cast<scalar_t*>(buffer + hidden_bytes);
    auto* sums = reinterpret_cast<float*>(buffer + 2 * hidden_bytes);
    linear(handle, first, sums, x, network_0_weight, network_0_bias, batch_size, input_size, layer_size1, true);
    linear(handle, second, sums, first, network_2_weight, network_2_bias, batch_size, layer_size1, layer_size2, true);
    linear(handle, static_cast<scalar_t*>(output), sums, second, network_4_weight, network_4_bias, batch_size, layer_size2, output_size,
           false);
}
