// relu(x W^T + b) / divisor, in the product's epilogue.
#include <kernelblaster/kernels/matmul.cuh>

struct ReluDivide {
    const scalar_t* bias;
    float divisor;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return relu(sum + to_float(bias[channel])) / divisor;
    }
};

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float divisor) {
    linear(out(output), in(x), in(linear_weight), batch_size, in_features, out_features,
           ReluDivide{in(linear_bias), divisor});
}
