// swish(x W^T + b) + bias into scratch memory, then one block per row and group normalises.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SwishBias {
    const scalar_t *inner, *outer;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return swish(sum + to_float(inner[channel])) + to_float(outer[channel]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* matmul_weight, void* matmul_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(matmul_weight), batch_size, in_features, out_features, SwishBias{in(matmul_bias), in(bias)});
    group_norm(out(output), y, Channels{batch_size, out_features, 1}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps);
}
