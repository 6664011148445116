// Linear layer with scale and clamp in its epilogue, log-sum-exp of each row by one block, then z * mish(z) in place.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct DoubleClamp {
    const scalar_t* bias;
    float scale, low, high;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return clamp(2.0f * scale * (sum + to_float(bias[channel])), low, high);
    }
};

struct TimesMish {
    __device__ float operator()(float v) const { return v * mish(v); }
};

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scale, float clamp_min,
                               float clamp_max) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(matmul_weight), batch_size, in_features, out_features,
           DoubleClamp{in(matmul_bias), scale, clamp_min, clamp_max});
    logsumexp(out(output), y, AxisView{batch_size, out_features, 1});
    map(out(output), out(output), batch_size, TimesMish());
}
