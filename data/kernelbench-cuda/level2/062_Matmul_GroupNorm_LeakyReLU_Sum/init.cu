// Linear layer into scratch memory, then one block per row and group normalises, rectifies and doubles.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct LeakyDouble {
    float slope;
    __device__ float operator()(float value, int64_t, int64_t) const { return 2.0f * leaky_relu(value, slope); }
};

void launch_gpu_implementation(void* output, void* x, void* fc_weight, void* fc_bias, void* gn_weight,
                               void* gn_bias, int64_t batch_size, int64_t in_features, int64_t out_features,
                               int64_t num_groups, float eps, float negative_slope) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    linear(y, in(x), in(fc_weight), batch_size, in_features, out_features, Bias{in(fc_bias)});
    group_norm(out(output), y, Channels{batch_size, out_features, 1}, num_groups, Affine{in(gn_weight), in(gn_bias)},
               eps, LeakyDouble{negative_slope});
}
