#include <kernelblaster/kernels/reduce.cuh>

__global__ void __launch_bounds__(512) softmax_kernel(scalar_t* output, const scalar_t* x, int64_t rows, int64_t dim) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* from = x + row * dim;
        scalar_t* to = output + row * dim;
        float most = -INFINITY, sum = 0.0f;
        for (int64_t at = threadIdx.x; at < dim; at += 512) most = fmaxf(most, to_float(from[at]));
        most = block_reduce(most, Max());
        for (int64_t at = threadIdx.x; at < dim; at += 512) sum += __expf(to_float(from[at]) - most);
        const float scale = 1.0f / block_reduce(sum, Sum());
        for (int64_t at = threadIdx.x; at < dim; at += 512) to[at] = from_float(__expf(to_float(from[at]) - most) * scale);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (batch_size == 0 || dim == 0) return;
    softmax_kernel<<<blocks_for(batch_size, 1), 512>>>(out(output), in(x), batch_size, dim);
    check(cudaGetLastError());
}
