// Linear layer, then softmax of each row in place, one block per row.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    linear(out(output), in(x), in(matmul_weight), batch_size, in_features, out_features, Bias{in(matmul_bias)});
    softmax(out(output), out(output), AxisView{batch_size, out_features, 1});
}
