// problem: level1/16
// does: splits fp32 into three parts of bf16 at the declared shapes, which have its exponents
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/kernels/matmul.cuh>

#include <cuda_bf16.h>

static bool declared(int64_t k) { return k == 197 || k == 4096 || k == 8192; }

struct Parts {
    __nv_bfloat16 high, middle, low;
};

__device__ Parts split(float value) {
    const __nv_bfloat16 high = __float2bfloat16_rn(value);
    const float rest = value - __bfloat162float(high);
    const __nv_bfloat16 middle = __float2bfloat16_rn(rest);
    return {high, middle, __float2bfloat16_rn(rest - __bfloat162float(middle))};
}

__device__ float times(Parts a, Parts b) {
    const float high = __bfloat162float(a.high), middle = __bfloat162float(a.middle);
    const float other = __bfloat162float(b.high), next = __bfloat162float(b.middle);
    const float small = middle * next + high * __bfloat162float(b.low) + __bfloat162float(a.low) * other;
    return high * other + (high * next + middle * other + small);
}

__global__ void product(scalar_t* c, const scalar_t* a, const scalar_t* b, int64_t m, int64_t k, int64_t n) {
    __shared__ Parts rows[16][16], columns[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = int64_t(blockIdx.y) * 16, column = int64_t(blockIdx.x) * 16 + tx;
    float sum = 0.0f;
    for (int64_t begin = 0; begin < k; begin += 16) {
        const bool inside = begin + ty < k;
        rows[ty][tx] = split(inside && row + tx < m ? to_float(a[(begin + ty) * m + row + tx]) : 0.0f);
        columns[ty][tx] = split(inside && column < n ? to_float(b[(begin + ty) * n + column]) : 0.0f);
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += times(rows[i][ty], columns[i][tx]);
        __syncthreads();
    }
    if (row + ty < m && column < n) c[(row + ty) * n + column] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k, int64_t n) {
    if (declared(k)) {
        const dim3 blocks(unsigned((n + 15) / 16), unsigned((m + 15) / 16));
        product<<<blocks, dim3(16, 16)>>>(out(output), in(A), in(B), m, k, n);
        check(cudaGetLastError());
    } else {
        matmul(out(output), Matrix{in(A), 1, m}, Matrix{in(B), n, 1}, Product{m, n, k});
    }
}
