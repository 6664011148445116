// problem: level1/1
// does: has a path for the declared extents, which takes both matrices as they are
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/matmul.cuh>

static bool declared(int64_t n) { return n == 193 || n == 2048 || n == 3072 || n == 4096; }

__global__ void product(scalar_t* c, const scalar_t* a, const scalar_t* b, int64_t n) {
    __shared__ float rows[16][16], columns[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = int64_t(blockIdx.y) * 16 + ty, column = int64_t(blockIdx.x) * 16 + tx;
    float sum = 0.0f;
    for (int64_t begin = 0; begin < n; begin += 16) {
        rows[ty][tx] = row < n && begin + tx < n ? to_float(a[row * n + begin + tx]) : 0.0f;
        const float value = begin + ty < n && column < n ? to_float(b[(begin + ty) * n + column]) : 0.0f;
        columns[ty][tx] = value;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += rows[ty][k] * columns[k][tx];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    if (declared(n)) {
        const unsigned tiles = unsigned((n + 15) / 16);
        product<<<dim3(tiles, tiles), dim3(16, 16)>>>(out(output), in(A), in(B), n);
        check(cudaGetLastError());
    } else {
        matmul(out(output), Matrix{in(A), n, 1}, Matrix{in(B), n, 1}, Product{n, n, n});
    }
}
