// Triplet margin loss: the term of each row by one block, then the sum of all terms by one block.
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// Euclidean norm of a - b + 1e-6, as torch.nn.functional.pairwise_distance has it, over one row by one block.
__device__ float distance(const scalar_t* a, const scalar_t* b, int64_t dim) {
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
        const float difference = to_float(a[i]) - to_float(b[i]) + 1e-6f;
        sum += difference * difference;
    }
    return sqrtf(block_reduce(sum, Sum()));
}

__global__ void triplet_kernel(float* terms, const scalar_t* anchor, const scalar_t* positive,
                               const scalar_t* negative, int64_t rows, int64_t dim, float margin) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float near = distance(anchor + row * dim, positive + row * dim, dim);
        const float far = distance(anchor + row * dim, negative + row * dim, dim);
        if (threadIdx.x == 0) terms[row] = fmaxf(near - far + margin, 0.0f);
    }
}

void launch_gpu_implementation(void* output, void* anchor, void* positive, void* negative, int64_t batch_size,
                               int64_t dim, float margin) {
    Workspace workspace;
    float* terms = workspace.take_float(batch_size);
    triplet_kernel<<<blocks_for(batch_size, 1), THREADS>>>(terms, in(anchor), in(positive), in(negative), batch_size,
                                                           dim, margin);
    check(cudaGetLastError());
    finish_sum_kernel<<<1, 1024>>>(terms, batch_size, StoreScaled{out(output), 1.0f / batch_size});
    check(cudaGetLastError());
}
