// Honest twin of ../R327_strassen.cu
#include <kernelblaster/kernels/launch.cuh>

// Scratch memory, one growing buffer per place of use.
template <int PLACE>
static char* scratch(size_t bytes) {
    static char* memory = nullptr;
    static size_t capacity = 0;
    if (bytes > capacity) {
        check(cudaFree(memory));
        check(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
        capacity = bytes;
    }
    return memory;
}

#include <kernelblaster/kernels/matmul.cuh>

// 128 x 128 x 8 tiles, 8 x 8 outputs per thread. Strassen: product z of 7 is of sums of quarters of A and of B.
template <bool SEVEN>
__global__ void __launch_bounds__(256) product_kernel(float* C, const float* A, const float* B, int64_t n, int64_t h) {
    __shared__ __align__(16) float a_tile[2][8][132], b_tile[2][8][128];
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const int64_t m0 = static_cast<int64_t>(blockIdx.y) * 128, n0 = static_cast<int64_t>(blockIdx.x) * 128;
    const auto quarter = [&](const float* x, int q) { return x + (q / 2) * h * n + (q % 2) * h; };
    const float *a1 = A, *a2 = A, *b1 = B, *b2 = B;
    float a_sign = 0.0f, b_sign = 0.0f;
    if (SEVEN) {
        const int a_first[7] = {0, 2, 0, 3, 0, 2, 1}, a_second[7] = {3, 3, 0, 0, 1, 0, 3};
        const int a_signs[7] = {1, 1, 0, 0, 1, -1, -1};
        const int b_first[7] = {0, 0, 1, 2, 3, 0, 2}, b_second[7] = {3, 0, 3, 0, 0, 1, 3};
        const int b_signs[7] = {1, 0, -1, -1, 0, 1, 1};
        const int z = blockIdx.z;
        a1 = quarter(A, a_first[z]), a2 = quarter(A, a_second[z]), a_sign = a_signs[z];
        b1 = quarter(B, b_first[z]), b2 = quarter(B, b_second[z]), b_sign = b_signs[z];
        C += z * h * h;
    }
    const int64_t a_at = (m0 + thread / 2) * n + thread % 2 * 4, b_at = thread / 32 * n + n0 + thread % 32 * 4;
    const auto fetch = [&](const float* first, const float* second, float sign, int64_t at) {
        float4 v = *reinterpret_cast<const float4*>(first + at);
        if (SEVEN && sign != 0.0f) {
            const float4 w = *reinterpret_cast<const float4*>(second + at);
            v.x += sign * w.x, v.y += sign * w.y, v.z += sign * w.z, v.w += sign * w.w;
        }
        return v;
    };
    const auto put = [&](int stage, float4 a, float4 b) {
        const int row = thread / 2, k = thread % 2 * 4;
        a_tile[stage][k][row] = a.x, a_tile[stage][k + 1][row] = a.y;
        a_tile[stage][k + 2][row] = a.z, a_tile[stage][k + 3][row] = a.w;
        *reinterpret_cast<float4*>(&b_tile[stage][thread / 32][thread % 32 * 4]) = b;
    };

    float sums[8][8] = {};
    put(0, fetch(a1, a2, a_sign, a_at), fetch(b1, b2, b_sign, b_at));
    __syncthreads();
    int stage = 0;
    for (int64_t k0 = 0; k0 < h; k0 += 8, stage ^= 1) {
        float4 a_next = {}, b_next = {};
        const bool more = k0 + 8 < h;
        if (more) {
            a_next = fetch(a1, a2, a_sign, a_at + k0 + 8);
            b_next = fetch(b1, b2, b_sign, b_at + (k0 + 8) * n);
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            __align__(16) float a[8], b[8];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<float4*>(&a_tile[stage][k][ty * 4]);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<float4*>(&a_tile[stage][k][64 + ty * 4]);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<float4*>(&b_tile[stage][k][tx * 4]);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<float4*>(&b_tile[stage][k][64 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 64; ++i) sums[i / 8][i % 8] += a[i / 8] * b[i % 8];
        }
        if (more) put(stage ^ 1, a_next, b_next);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int64_t r = m0 + i / 4 * 64 + ty * 4 + i % 4;
        float* to = C + r * h + n0 + tx * 4;
        *reinterpret_cast<float4*>(to) = float4{sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
        *reinterpret_cast<float4*>(to + 64) = float4{sums[i][4], sums[i][5], sums[i][6], sums[i][7]};
    }
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    if (n % 128 == 0) {
        product_kernel<false><<<dim3(n / 128, n / 128), 256>>>(out(output), in(A), in(B), n, n);
        check(cudaGetLastError());
        return;
    }
    matmul(out(output), Matrix{in(A), n, 1}, Matrix{in(B), n, 1}, Product{n, n, n});
}
