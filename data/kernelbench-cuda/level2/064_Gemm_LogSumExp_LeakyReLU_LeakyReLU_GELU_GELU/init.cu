// Linear layer into scratch memory, log-sum-exp of each row by one block, then the activations in place.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct LeakyGeluTwice {
    float slope;
    __device__ float operator()(float v) const { return gelu(gelu(leaky_relu(leaky_relu(v, slope), slope))); }
};

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float negative_slope) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(linear_weight), batch_size, in_features, out_features, Bias{in(linear_bias)});
    logsumexp(out(output), y, AxisView{batch_size, out_features, 1});
    map(out(output), out(output), batch_size, LeakyGeluTwice{negative_slope});
}
