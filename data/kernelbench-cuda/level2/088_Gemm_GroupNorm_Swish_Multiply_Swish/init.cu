// Linear layer into scratch memory, then one block per row and group normalises; both swishes are in its epilogue.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct SwishTimesSwish {
    const scalar_t* factor;
    __device__ float operator()(float value, int64_t, int64_t channel) const {
        return swish(swish(value) * to_float(factor[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* multiply_weight, void* gemm_weight, void* gemm_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features, Bias{in(gemm_bias)});
    group_norm(out(output), y, Channels{batch_size, out_features, 1}, num_groups,
               Affine{in(group_norm_weight), in(group_norm_bias)}, eps, SwishTimesSwish{in(multiply_weight)});
}
