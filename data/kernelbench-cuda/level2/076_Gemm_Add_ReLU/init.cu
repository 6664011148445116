// relu(x W^T + bias), in the product's epilogue.
#include <kernelblaster/kernels/matmul.cuh>

void launch_gpu_implementation(void* output, void* x, void* bias, void* gemm_weight, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    linear(out(output), in(x), in(gemm_weight), batch_size, in_features, out_features, BiasRelu{in(bias)});
}
