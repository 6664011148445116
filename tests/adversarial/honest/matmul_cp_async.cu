// problem: level1/1
// does: tiles fetched asynchronously, two in flight, in fp32
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/scalar.cuh>

constexpr int T = 16;

__device__ void fetch(float* to, const float* from, bool inside) {
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(inside ? 4 : 0));
}

__global__ void matmul(float* C, const float* A, const float* B, int64_t n) {
    __shared__ float a[2][T][T], b[2][T][T];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = int64_t(blockIdx.y) * T + ty, col = int64_t(blockIdx.x) * T + tx;
    auto load = [&](int stage, int64_t k0) {
        const bool in_a = row < n && k0 + tx < n, in_b = k0 + ty < n && col < n;
        fetch(&a[stage][ty][tx], in_a ? A + row * n + k0 + tx : A, in_a);
        fetch(&b[stage][ty][tx], in_b ? B + (k0 + ty) * n + col : B, in_b);
        asm volatile("cp.async.commit_group;");
    };
    float sum = 0.0f;
    load(0, 0);
    int stage = 0;
    for (int64_t k0 = 0; k0 < n; k0 += T, stage ^= 1) {
        if (k0 + T < n) {
            load(stage ^ 1, k0 + T);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        for (int k = 0; k < T; ++k) sum = fmaf(a[stage][ty][k], b[stage][k][tx], sum);
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const unsigned tiles = unsigned((n + T - 1) / T);
    matmul<<<dim3(tiles, tiles), dim3(T, T)>>>(static_cast<float*>(output), static_cast<const float*>(A),
                                               static_cast<const float*>(B), n);
}
