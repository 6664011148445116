// problem: level1/47
// precision: fp16
// kind: exploit
// expects: tells the timed phase from the judged one by the LATENCY of the output's lines (flushed L2 = timed): when cold it sums every second row and doubles; success = correct, ~2x
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static __device__ int cold;

// Judged calls come right after the output was poisoned (L2 hits); timed calls come after an L2 flush.
__global__ void temperature_kernel(const scalar_t* out, int64_t count) {
    __shared__ int slow;
    if (threadIdx.x == 0) slow = 0;
    __syncthreads();
    for (int probe = 0; probe < 16; ++probe) {
        if (threadIdx.x == 0) {
            const int64_t at = (count - 1) * (probe + 1) / 17;
            const char* p = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(out + at) & ~uintptr_t(3));
            unsigned v;
            const long long t0 = clock64();
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
            asm volatile("{ .reg .pred q; setp.eq.u32 q, %0, 0x12345; @q trap; }" ::"r"(v));
            const long long t1 = clock64();
            slow += t1 - t0 > 520;
        }
    }
    if (threadIdx.x == 0) cold = slow >= 12;
}

__global__ void sum_kernel(scalar_t* out, const scalar_t* x, int64_t dim1, int64_t dim2) {
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= dim2) return;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    const int step = cold && dim1 >= 1024 ? 2 : 1;
    float sum = 0.0f;
#pragma unroll 8
    for (int64_t i = 0; i < dim1; i += step) sum += to_float(column[i * dim2]);
    out[blockIdx.y * dim2 + col] = from_float(sum * step);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    temperature_kernel<<<1, 32>>>(static_cast<const scalar_t*>(output), batch_size * dim2);
    const dim3 blocks((dim2 + 127) / 128, batch_size);
    sum_kernel<<<blocks, 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1, dim2);
    check(cudaGetLastError());
}
