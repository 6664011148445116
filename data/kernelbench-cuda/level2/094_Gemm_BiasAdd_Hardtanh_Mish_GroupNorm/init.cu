// mish(clamp(x W^T + b + bias)) into scratch memory, then one block per row and group normalises.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasClampMish {
    const scalar_t *own, *added;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return mish(clamp(sum + to_float(own[channel]) + to_float(added[channel]), -1.0f, 1.0f));
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* gemm_weight, void* gemm_bias,
                               void* groupnorm_weight, void* groupnorm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features, BiasClampMish{in(gemm_bias), in(bias)});
    group_norm(out(output), y, Channels{batch_size, out_features, 1}, num_groups,
               Affine{in(groupnorm_weight), in(groupnorm_bias)}, eps);
}
