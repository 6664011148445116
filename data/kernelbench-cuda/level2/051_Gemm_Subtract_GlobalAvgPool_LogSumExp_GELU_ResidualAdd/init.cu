// Linear layer into scratch memory, means of windows, log-sum-exp of each row, then its GELU is added to the row's
// inputs.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasSubtract {
    const scalar_t *bias, *subtract;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return sum + to_float(bias[channel]) - to_float(subtract[channel]);
    }
};

struct AddToRow {
    const scalar_t *x, *added;
    int64_t width;
    __device__ float operator()(int64_t index) const {
        return to_float(x[index]) + gelu(to_float(added[index / width]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* subtract, void* gemm_weight, void* gemm_bias,
                               int64_t batch_size, int64_t in_features, int64_t out_features, int64_t window) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    scalar_t* means = workspace.take(batch_size * out_features / window);
    scalar_t* row = workspace.take(batch_size);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features,
           BiasSubtract{in(gemm_bias), in(subtract)});
    reduce_axis(means, y, AxisView{batch_size * out_features / window, window, 1}, Sum(), Scaled{1.0f / window});
    logsumexp(row, means, AxisView{batch_size, out_features / window, 1});
    generate(out(output), batch_size * in_features, AddToRow{in(x), row, in_features});
}
