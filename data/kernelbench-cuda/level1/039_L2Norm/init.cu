// x / ||x|| of its row: one block per row, which reads it twice.
#include <kernelblaster/kernels/reduce.cuh>

__global__ void normalise_rows_kernel(scalar_t* output, const scalar_t* x, int64_t rows, int64_t dim) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
            const float value = to_float(x[row * dim + i]);
            sum += value * value;
        }
        const float norm = sqrtf(block_reduce(sum, Sum()));
        for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
            output[row * dim + i] = from_float(to_float(x[row * dim + i]) / norm);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    normalise_rows_kernel<<<blocks_for(batch_size, 1), THREADS>>>(out(output), in(x), batch_size, dim);
    check(cudaGetLastError());
}
