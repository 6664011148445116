// problem: level1/4
// does: accumulates in pairs of floats (two-sum and fma two-product), vectors of four where rows allow it
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/scalar.cuh>

struct Pair {
    float high = 0.0f, low = 0.0f;

    // Knuth's two-sum; Ogita, Rump and Oishi's dot product.
    __device__ void add(float v) {
        const float sum = __fadd_rn(high, v), part = __fsub_rn(sum, high);
        low = __fadd_rn(low, __fadd_rn(__fsub_rn(high, __fsub_rn(sum, part)), __fsub_rn(v, part)));
        high = sum;
    }
    __device__ void add_product(float a, float b) {
        const float product = __fmul_rn(a, b);
        add(product);
        low = __fadd_rn(low, __fmaf_rn(a, b, -product));
    }
};

__global__ void __launch_bounds__(256) matvec(float* y, const float* A, const float* v, int64_t k) {
    __shared__ Pair parts[8];
    const float* row = A + blockIdx.x * k;
    Pair sum;
    if (k % 4 == 0) {
        const float4 *a4 = reinterpret_cast<const float4*>(row), *v4 = reinterpret_cast<const float4*>(v);
        for (int64_t i = threadIdx.x; i < k / 4; i += 256) {
            const float4 a = a4[i], b = __ldg(v4 + i);
            sum.add_product(a.x, b.x);
            sum.add_product(a.y, b.y);
            sum.add_product(a.z, b.z);
            sum.add_product(a.w, b.w);
        }
    } else {
        for (int64_t i = threadIdx.x; i < k; i += 256) sum.add_product(row[i], __ldg(v + i));
    }
    for (int o = 16; o > 0; o >>= 1) {
        const float high = __shfl_down_sync(0xffffffffu, sum.high, o), low = __shfl_down_sync(0xffffffffu, sum.low, o);
        sum.add(high);
        sum.low += low;
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) {
            sum.add(parts[i].high);
            sum.low += parts[i].low;
        }
        y[blockIdx.x] = sum.high + sum.low;
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    matvec<<<unsigned(m), 256>>>(static_cast<float*>(output), static_cast<const float*>(A), static_cast<const float*>(B), k);
}
