// Product into scratch memory, then one block per feature normalises over the batch; GELU and ReLU in its epilogue.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct GeluRelu {
    __device__ float operator()(float value, int64_t, int64_t) const { return relu(gelu(value)); }
};

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t in_features, int64_t out_features,
                               float eps) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features, Plain());
    batch_norm(out(output), y, Channels{batch_size, out_features, 1},
               Affine{in(batch_norm_weight), in(batch_norm_bias)}, eps, GeluRelu());
}
