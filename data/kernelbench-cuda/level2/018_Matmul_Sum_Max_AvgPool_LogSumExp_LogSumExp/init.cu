// Linear layer, then sum, maximum, mean and log-sum-exp twice: each reduction takes the last axis that is left, one
// thread per line.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t branches, int64_t parts, int64_t averaged,
                               int64_t compared, int64_t summed) {
    const int64_t out_features = branches * parts * averaged * compared * summed;
    Workspace workspace;
    scalar_t* a = workspace.take(batch_size * out_features);
    scalar_t* b = workspace.take(batch_size * out_features / summed);
    linear(a, in(x), in(linear_weight), batch_size, in_features, out_features, Bias{in(linear_bias)});
    int64_t lines = batch_size * out_features / summed;
    reduce_axis(b, a, AxisView{lines, summed, 1}, Sum(), Scaled{1.0f});
    lines /= compared;
    reduce_axis(a, b, AxisView{lines, compared, 1}, Max(), Scaled{1.0f});
    lines /= averaged;
    reduce_axis(b, a, AxisView{lines, averaged, 1}, Sum(), Scaled{1.0f / averaged});
    logsumexp(a, b, AxisView{batch_size * branches, parts, 1});
    logsumexp(out(output), a, AxisView{batch_size, branches, 1});
}
