// min(x W^T + b, constant) - constant, in the product's epilogue; the constant is a tensor of one element.
#include <kernelblaster/kernels/matmul.cuh>

struct MinSubtract {
    const scalar_t *bias, *constant;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return fminf(sum + to_float(bias[channel]), to_float(*constant)) - to_float(*constant);
    }
};

void launch_gpu_implementation(void* output, void* x, void* constant, void* linear_weight, void* linear_bias,
                               int64_t batch_size, int64_t in_features, int64_t out_features) {
    linear(out(output), in(x), in(linear_weight), batch_size, in_features, out_features,
           MinSubtract{in(linear_bias), in(constant)});
}
