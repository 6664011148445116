// Two products into scratch memory, the sigmoid in the first one's epilogue; one block per row sums the exponentials.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasSigmoid {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return sigmoid(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* linear1_weight, void* linear1_bias,
                               void* linear2_weight, void* linear2_bias, int64_t batch_size, int64_t in_features,
                               int64_t hidden, int64_t out_features) {
    Workspace workspace;
    scalar_t* inner = workspace.take(batch_size * hidden);
    scalar_t* outer = workspace.take(batch_size * out_features);
    linear(inner, in(x), in(linear1_weight), batch_size, in_features, hidden, BiasSigmoid{in(linear1_bias)});
    linear(outer, inner, in(linear2_weight), batch_size, hidden, out_features, Bias{in(linear2_bias)});
    logsumexp(out(output), outer, AxisView{batch_size, out_features, 1});
}
