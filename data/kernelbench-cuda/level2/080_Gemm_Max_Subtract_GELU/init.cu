// Linear layer into scratch memory, maximum of each row by one block, their mean by another, then gelu(maximum -
// mean).
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct CentredGelu {
    const scalar_t *maxima, *mean;
    __device__ float operator()(int64_t index) const { return gelu(to_float(maxima[index]) - to_float(*mean)); }
};

void launch_gpu_implementation(void* output, void* x, void* gemm_weight, void* gemm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    Workspace workspace;
    scalar_t* y = workspace.take(batch_size * out_features);
    scalar_t* maxima = workspace.take(batch_size);
    scalar_t* mean = workspace.take(1);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features, Bias{in(gemm_bias)});
    reduce_rows(maxima, y, batch_size, out_features, Max(), Scaled{1.0f});
    reduce_rows(mean, maxima, 1, batch_size, Sum(), Scaled{1.0f / batch_size});
    generate(out(output), batch_size, CentredGelu{maxima, mean});
}
