// scale * batch_norm(x W^T + b) in the product's epilogue, then softmax of each row in place, one block per row.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>

struct NormScale {
    const scalar_t *bias, *weight, *shift, *mean, *variance, *scale;
    float eps;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        const float centred = sum + to_float(bias[channel]) - to_float(mean[channel]);
        const float normal = centred * rsqrtf(to_float(variance[channel]) + eps);
        return to_float(*scale) * (normal * to_float(weight[channel]) + to_float(shift[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* scale, void* gemm_weight, void* gemm_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps) {
    const NormScale epilogue{in(gemm_bias), in(bn_weight), in(bn_bias), in(bn_running_mean), in(bn_running_var),
                             in(scale), eps};
    linear(out(output), in(x), in(gemm_weight), batch_size, in_features, out_features, epilogue);
    softmax(out(output), out(output), AxisView{batch_size, out_features, 1});
}
