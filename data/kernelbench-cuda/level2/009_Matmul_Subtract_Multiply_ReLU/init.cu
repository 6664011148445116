// relu((x W^T + b - subtrahend) * multiplier): the product's epilogue does the rest.
#include <kernelblaster/kernels/matmul.cuh>

struct ShiftScaleRelu {
    const scalar_t* bias;
    float subtrahend, multiplier;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return relu((sum + to_float(bias[channel]) - subtrahend) * multiplier);
    }
};

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float subtrahend, float multiplier) {
    linear(out(output), in(x), in(linear_weight), batch_size, in_features, out_features,
           ShiftScaleRelu{in(linear_bias), subtrahend, multiplier});
}
