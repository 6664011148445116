// Log-softmax over rows: one block per row, three passes (maximum, sum, write).
#include <kernelblaster/kernels/softmax.cuh>

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax(out(output), in(x), AxisView{batch_size, dim, 1}, LogSoftmaxValue());
}
