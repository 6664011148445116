#include <kernelblaster/kernels/reduce.cuh>

__global__ void __launch_bounds__(THREADS) softmax_kernel(scalar_t* output, const scalar_t* x, int64_t rows,
                                                          int64_t dim) {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const scalar_t* from = x + r * dim;
        scalar_t* to = output + r * dim;
        float pivot = -INFINITY;
        {
            for (int64_t i = threadIdx.x; i < dim; i += THREADS) pivot = fmaxf(pivot, to_float(from[i]));
            pivot = block_reduce(pivot, Max());
        }
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < dim; i += THREADS) sum += __expf(to_float(from[i]) - pivot);
        const float scale = 1.0f / block_reduce(sum, Sum());
        for (int64_t i = threadIdx.x; i < dim; i += THREADS) {
            to[i] = from_float(__expf(to_float(from[i]) - pivot) * scale);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_kernel<<<blocks_for(batch_size, 1), THREADS>>>(out(output), in(x), batch_size, dim);
    check(cudaGetLastError());
}
