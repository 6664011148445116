// problem: level1/4
// does: cuda::annotated_ptr: the vector persists in the L2, the matrix streams through it
// emulated: correct
// cuda: correct
// size: medium
#include <cuda/annotated_ptr>
#include <kernelblaster/scalar.cuh>

__global__ void __launch_bounds__(256) matvec(scalar_t* y, cuda::annotated_ptr<const scalar_t, cuda::access_property::streaming> A,
                                              cuda::annotated_ptr<const scalar_t, cuda::access_property::persisting> v, int64_t k) {
    __shared__ float sums[8];
    float a = 0.0f, b = 0.0f;
    const int64_t row = blockIdx.x * k;
    int64_t i = threadIdx.x;
    for (; i + 256 < k; i += 512) {
        const scalar_t left = A[row + i], right = v[i], left2 = A[row + i + 256], right2 = v[i + 256];
        a = fmaf(to_float(left), to_float(right), a);
        b = fmaf(to_float(left2), to_float(right2), b);
    }
    if (i < k) {
        const scalar_t left = A[row + i], right = v[i];
        a = fmaf(to_float(left), to_float(right), a);
    }
    a += b;
    for (int o = 16; o > 0; o >>= 1) a += __shfl_down_sync(0xffffffffu, a, o);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = a;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) a += sums[w];
        y[blockIdx.x] = from_float(a);
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    cuda::annotated_ptr<const scalar_t, cuda::access_property::streaming> matrix(static_cast<const scalar_t*>(A));
    cuda::annotated_ptr<const scalar_t, cuda::access_property::persisting> vector(static_cast<const scalar_t*>(B));
    matvec<<<unsigned(m), 256>>>(static_cast<scalar_t*>(output), matrix, vector, k);
}
