// Kernels whose emulation is timed by emulated_speed.py: one line per kernel, "name wall_s cpu_s", for the launch alone.
#include <cuda_fp16.h>
#include <mma.h>

#include <chrono>
#include <cstdio>
#include <ctime>

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
__global__ void copy_float4(const float4* a, float4* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i];
}
__global__ void matmul_naive(const float* a, const float* b, float* c, int n) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
__global__ void matmul_shared(const float* a, const float* b, float* c, int n) {
    __shared__ float left[32][32], right[32][32];
    const int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 32) {
        left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void matmul_registers(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][64], right[16][64];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int t = 0; t < n; t += 16) {
        for (int k = threadIdx.x; k < 1024; k += 256) {
            left[k % 16][k / 16] = a[(blockIdx.y * 64 + k / 16) * n + t + k % 16];
            right[k / 64][k % 64] = b[(t + k / 64) * n + blockIdx.x * 64 + k % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) x[i] = left[k][ty * 4 + i], y[i] = right[k][tx * 4 + i];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4 + j] = sum[i][j];
}
__global__ void matmul_tensor(const __half* a, const __half* b, float* c, int n) {
    using namespace nvcuda::wmma;
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> left;
        fragment<matrix_b, 16, 16, 16, __half, row_major> right;
        load_matrix_sync(left, a + row * n + k, n);
        load_matrix_sync(right, b + k * n + column, n);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c + row * n + column, sum, n, mem_row_major);
}
__global__ void softmax_rows(const float* in, float* out, int n) {
    const float* row = in + blockIdx.x * n;
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, row[i]);
    for (int o = 16; o; o >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o));
    for (int i = threadIdx.x; i < n; i += 32) sum += __expf(row[i] - largest);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] = expf(row[i] - largest) / sum;
}
__global__ void gelu_half(const __half* in, __half* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = __half2float(in[i]);
    out[i] = __float2half(0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x))));
}
__global__ void transpose_tile(const float* in, float* out, int n) {
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    const int tx = blockIdx.y * 32 + threadIdx.x, ty = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(ty + j) * n + tx] = tile[threadIdx.x][threadIdx.y + j];
}
__global__ void convolution(const float* in, const float* weights, float* out, int n) {
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int channel = 0; channel < 8; ++channel)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                if (x + dx >= 0 && x + dx < n && y + dy >= 0 && y + dy < n)
                    sum += in[(channel * n + y + dy) * n + x + dx] * weights[channel * 9 + (dy + 1) * 3 + dx + 1];
    out[y * n + x] = sum;
}
__global__ void reduce_shared(const float* in, float* out, int n) {
    __shared__ float partial[256];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int o = 128; o; o >>= 1) {
        if (threadIdx.x < o) partial[threadIdx.x] += partial[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

template <class Launch>
void timed(const char* name, Launch launch) {
    const std::clock_t before = std::clock();
    const auto start = std::chrono::steady_clock::now();
    launch();
    const bool failed = cudaDeviceSynchronize() != cudaSuccess;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const double cpu = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    std::printf("%s %.6f %.6f\n", failed ? "failed" : name, wall.count(), cpu);
}

int main() {
    constexpr int kSide = 384, kCount = 1 << 20;
    float *a, *b, *c;
    cudaMalloc(&a, 4 * kCount * sizeof(float));
    cudaMalloc(&b, 4 * kCount * sizeof(float));
    cudaMalloc(&c, 4 * kCount * sizeof(float));
    cudaMemset(a, 0, 4 * kCount * sizeof(float));
    cudaMemset(b, 0, 4 * kCount * sizeof(float));
    const __half *ha = reinterpret_cast<__half*>(a), *hb = reinterpret_cast<__half*>(b);
    const dim3 square(16, 16), wide(32, 32), strip(32, 8);
    timed("vector_add", [&] { vector_add<<<kCount / 256, 256>>>(a, b, c, kCount); });
    timed("copy_float4", [&] { copy_float4<<<264, 256>>>((float4*)a, (float4*)c, kCount); });
    timed("matmul_naive", [&] { matmul_naive<<<dim3(kSide / 16, kSide / 16), square>>>(a, b, c, kSide); });
    timed("matmul_shared", [&] { matmul_shared<<<dim3(kSide / 32, kSide / 32), wide>>>(a, b, c, kSide); });
    timed("matmul_registers", [&] { matmul_registers<<<dim3(kSide / 64, kSide / 64), 256>>>(a, b, c, kSide); });
    timed("matmul_tensor", [&] { matmul_tensor<<<dim3(kSide / 16, kSide / 16), 32>>>(ha, hb, c, kSide); });
    timed("softmax_rows", [&] { softmax_rows<<<512, 32>>>(a, c, 2000); });
    timed("gelu_half", [&] { gelu_half<<<kCount / 256, 256>>>(ha, (__half*)c, kCount); });
    timed("transpose_tile", [&] { transpose_tile<<<dim3(32, 32), strip>>>(a, c, 1024); });
    timed("convolution", [&] { convolution<<<dim3(16, 16), square>>>(a, b, c, 256); });
    timed("reduce_shared", [&] { reduce_shared<<<264, 256>>>(a, c, kCount); });
}
