// (x W^T + b) * scale, normalised with given statistics: all in the product's epilogue.
#include <kernelblaster/kernels/matmul.cuh>

struct ScaleNorm {
    const scalar_t *bias, *scale, *weight, *shift, *mean, *variance;
    float eps;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float scaled = (sum + to_float(bias[channel])) * to_float(scale[channel]);
        const float normal = (scaled - to_float(mean[channel])) * rsqrtf(to_float(variance[channel]) + eps);
        return normal * to_float(weight[channel]) + to_float(shift[channel]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* scale, void* gemm_weight, void* gemm_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps) {
    const ScaleNorm epilogue{in(gemm_bias), in(scale), in(bn_weight), in(bn_bias), in(bn_running_mean),
                             in(bn_running_var), eps};
    linear(out(output), in(x), in(gemm_weight), batch_size, in_features, out_features, epilogue);
}
