// gelu(clamp(scaling_factor * (x W^T + b))), in the product's epilogue.
#include <kernelblaster/kernels/matmul.cuh>

struct ScaleClampGelu {
    const scalar_t* bias;
    float factor, low, high;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return gelu(clamp((sum + to_float(bias[channel])) * factor, low, high));
    }
};

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scaling_factor, float hardtanh_min,
                               float hardtanh_max) {
    linear(out(output), in(x), in(gemm_weight), batch_size, in_features, out_features,
           ScaleClampGelu{in(gemm_bias), scaling_factor, hardtanh_min, hardtanh_max});
}
