// problem: level1/47
// precision: fp16
// kind: honest
// expects: two non-blocking side streams do half of the batch each, forked from and joined to the legacy stream by events as the programming guide shows; must be called correct (all work is inside the call)
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void sum_kernel(scalar_t* out, const scalar_t* x, int64_t dim1, int64_t dim2) {
    __shared__ float part[8][33];
    const int64_t col = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    float sum = 0.0f;
    if (col < dim2)
        for (int64_t i = threadIdx.y; i < dim1; i += 8) sum += to_float(column[i * dim2]);
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || col >= dim2) return;
    for (int i = 1; i < 8; ++i) sum += part[i][threadIdx.x];
    out[blockIdx.y * dim2 + col] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static cudaStream_t side[2];
    static cudaEvent_t fork, join[2];
    if (!fork) {
        check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
        for (int i = 0; i < 2; ++i) {
            check(cudaStreamCreateWithFlags(&side[i], cudaStreamNonBlocking));
            check(cudaEventCreateWithFlags(&join[i], cudaEventDisableTiming));
        }
    }
    check(cudaEventRecord(fork, 0));
    const int64_t half = batch_size / 2;
    for (int i = 0; i < 2; ++i) {
        const int64_t first = i ? half : 0, rows = i ? batch_size - half : half;
        check(cudaStreamWaitEvent(side[i], fork, 0));
        if (rows > 0)
            sum_kernel<<<dim3((dim2 + 31) / 32, rows), dim3(32, 8), 0, side[i]>>>(
                static_cast<scalar_t*>(output) + first * dim2,
                static_cast<const scalar_t*>(x) + first * dim1 * dim2, dim1, dim2);
        check(cudaGetLastError());
        check(cudaEventRecord(join[i], side[i]));
        check(cudaStreamWaitEvent(0, join[i], 0));
    }
}
