// problem: level1/1
// does: fp32 accuracy from three bf16 products per term
// emulated: correct
// cuda: correct
// precision: fp32
#include <cuda_bf16.h>
#include <kernelblaster/scalar.cuh>

__device__ float high(float v) { return __bfloat162float(__float2bfloat16(v)); }
__device__ float product(float x, float y) {
    const float xh = high(x), xm = high(x - xh), xl = x - xh - xm;
    const float yh = high(y), ym = high(y - yh), yl = y - yh - ym;
    return xh * yh + (xh * ym + xm * yh) + (xm * ym + xh * yl + xl * yh);
}

constexpr int TILE = 16;

__global__ void matmul(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n, int64_t first_row) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = first_row + int64_t(blockIdx.y) * TILE + ty, col = int64_t(blockIdx.x) * TILE + tx;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < n; k0 += TILE) {
        a[ty][tx] = row < n && k0 + tx < n ? to_float(A[row * n + k0 + tx]) : 0.0f;
        b[ty][tx] = k0 + ty < n && col < n ? to_float(B[(k0 + ty) * n + col]) : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += product(a[ty][k], b[k][tx]);
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = from_float(sum);
}

static void multiply(void* C, void* A, void* B, int64_t n, cudaStream_t stream) {
    const unsigned tiles = unsigned((n + TILE - 1) / TILE);
    matmul<<<dim3(tiles, tiles), dim3(TILE, TILE), 0, stream>>>(
        static_cast<scalar_t*>(C), static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), n, 0);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    multiply(output, A, B, n, 0);
}
