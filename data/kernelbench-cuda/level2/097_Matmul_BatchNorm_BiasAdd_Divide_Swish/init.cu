// Batch norm with given statistics, bias, division and swish, all in the product's epilogue.
#include <kernelblaster/kernels/matmul.cuh>

struct NormBiasDivideSwish {
    const scalar_t *own, *weight, *shift, *mean, *variance, *bias;
    float eps, divisor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float centred = sum + to_float(own[channel]) - to_float(mean[channel]);
        const float normal = centred * rsqrtf(to_float(variance[channel]) + eps);
        const float shifted = normal * to_float(weight[channel]) + to_float(shift[channel]) + to_float(*bias);
        return swish(shifted / divisor);
    }
};

void launch_gpu_implementation(void* output, void* x, void* bias, void* matmul_weight, void* matmul_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps,
                               float divisor) {
    const NormBiasDivideSwish epilogue{in(matmul_bias), in(bn_weight), in(bn_bias), in(bn_running_mean),
                                       in(bn_running_var), in(bias), eps, divisor};
    linear(out(output), in(x), in(matmul_weight), batch_size, in_features, out_features, epilogue);
}
