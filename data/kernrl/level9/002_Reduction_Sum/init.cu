// Sums of rows: one block per row.
#include <kernelblaster/kernels/reduce.cuh>

void launch_gpu_implementation(void* output, void* x, int64_t rows, int64_t length) {
    reduce_rows(out(output), in(x), rows, length, Sum(), Scaled{1.0f});
}
