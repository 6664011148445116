// sigmoid(x W^T + b) into scratch memory, then one block per row sums.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasSigmoid {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return sigmoid(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(linear_weight), batch_size, in_features, out_features, BiasSigmoid{in(linear_bias)});
    reduce_rows(out(output), y, batch_size, out_features, Sum(), Scaled{1.0f});
}
