// Linear layer into scratch memory, maxima of windows, then one block per row sums them. A window that the row does
// not fill is left out.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t kernel_size, float scale_factor) {
    const int64_t windows = out_features / kernel_size;
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    scalar_t* maxima = workspace.take(batch_size * windows);
    linear(y, in(x), in(matmul_weight), batch_size, in_features, out_features, Bias{in(matmul_bias)});
    pool(maxima, y, pool1d_shape(batch_size, out_features, kernel_size, kernel_size), MaxPool());
    reduce_rows(out(output), maxima, batch_size, windows, Sum(), Scaled{scale_factor});
}
