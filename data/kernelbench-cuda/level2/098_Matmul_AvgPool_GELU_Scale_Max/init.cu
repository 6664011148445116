// Linear layer into scratch memory, means of windows, their scaled GELU in place, then one block per row finds the
// maximum. A window that the row does not fill is left out.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct GeluScale {
    float factor;
    __device__ float operator()(float v) const { return gelu(v) * factor; }
};

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t pool_size, float scale_factor) {
    const int64_t windows = out_features / pool_size;
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    scalar_t* means = workspace.take(batch_size * windows);
    linear(y, in(x), in(matmul_weight), batch_size, in_features, out_features, Bias{in(matmul_bias)});
    pool(means, y, pool1d_shape(batch_size, out_features, pool_size, pool_size), AveragePool());
    map(means, means, batch_size * windows, GeluScale{scale_factor});
    reduce_rows(out(output), means, batch_size, windows, Max(), Scaled{1.0f});
}
