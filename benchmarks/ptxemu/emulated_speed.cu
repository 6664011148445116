// Kernels whose emulation is timed by emulated_speed.py: one line per kernel, "name wall_s cpu_s sum", for the launch
// alone; the sum is one of the output's bits.
#include <cuda_fp16.h>
#include <mma.h>

#include <chrono>
#include <cstdio>
#include <cstring>
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
__device__ unsigned at(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

// 128 x 128 of the product in a block, 8 x 8 in a thread, tiles through shared memory by 16 bytes.
__global__ void matmul_vectors(const float* a, const float* b, float* c, int n) {
    __shared__ float left[8][128], right[8][128];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 128, column = blockIdx.x * 128;
    float sum[8][8] = {};
    for (int t = 0; t < n; t += 8) {
        const int r = threadIdx.x / 2, k4 = threadIdx.x % 2 * 4;
        const float4 x = *reinterpret_cast<const float4*>(a + (row + r) * n + t + k4);
        left[k4][r] = x.x, left[k4 + 1][r] = x.y, left[k4 + 2][r] = x.z, left[k4 + 3][r] = x.w;
        const int k = threadIdx.x / 32, j = threadIdx.x % 32 * 4;
        *reinterpret_cast<float4*>(&right[k][j]) = *reinterpret_cast<const float4*>(b + (t + k) * n + column + j);
        __syncthreads();
        for (int k = 0; k < 8; ++k) {
            float u[8], v[8];
            for (int i = 0; i < 8; i += 4) {
                *reinterpret_cast<float4*>(u + i) = *reinterpret_cast<const float4*>(&left[k][ty * 8 + i]);
                *reinterpret_cast<float4*>(v + i) = *reinterpret_cast<const float4*>(&right[k][tx * 8 + i]);
            }
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) c[(row + ty * 8 + i) * n + column + tx * 8 + j] = sum[i][j];
}

// 64 x 64 of the product in a block of four warps, by ldmatrix and mma.sync; rows of b are columns of the product.
__global__ void matmul_mma(const __half* a, const __half* b, float* c, int n) {
    __shared__ __align__(16) __half left[64][40], right[64][40];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, top = warp / 2 * 32, side = warp % 2 * 32;
    float sum[2][4][4] = {};
    for (int t = 0; t < n; t += 32) {
        for (int i = threadIdx.x; i < 256; i += 128) {
            const int r = i / 4, k = i % 4 * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(&left[r][k])), "l"(a + (blockIdx.y * 64 + r) * n + t + k));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(&right[r][k])), "l"(b + (blockIdx.x * 64 + r) * n + t + k));
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        for (int k = 0; k < 32; k += 16) {
            unsigned x[2][4], y[4][2];
            for (int m = 0; m < 2; ++m)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x[m][0]), "=r"(x[m][1]), "=r"(x[m][2]), "=r"(x[m][3])
                             : "r"(at(&left[top + m * 16 + lane % 16][k + lane / 16 * 8])));
            for (int p = 0; p < 2; ++p)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(y[2 * p][0]), "=r"(y[2 * p][1]), "=r"(y[2 * p + 1][0]), "=r"(y[2 * p + 1][1])
                             : "r"(at(&right[side + p * 16 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 8])));
            for (int m = 0; m < 2; ++m)
                for (int p = 0; p < 4; ++p)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[m][p][0]), "+f"(sum[m][p][1]), "+f"(sum[m][p][2]), "+f"(sum[m][p][3])
                                 : "r"(x[m][0]), "r"(x[m][1]), "r"(x[m][2]), "r"(x[m][3]), "r"(y[p][0]), "r"(y[p][1]));
        }
        __syncthreads();
    }
    for (int m = 0; m < 2; ++m)
        for (int p = 0; p < 4; ++p)
            for (int e = 0; e < 4; ++e)
                c[(blockIdx.y * 64 + top + m * 16 + lane / 4 + e / 2 * 8) * n + blockIdx.x * 64 + side + p * 8 + lane % 4 * 2 + e % 2] = sum[m][p][e];
}

__device__ unsigned long long describe(const void* tile) {
    return (at(tile) & 0x3ffff) >> 4 | 64ull << 32 | 1ull << 62;
}
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
        "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "
        "%58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
        : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
        : "l"(a), "l"(b));
}

// 128 x 128 of the product in a block of two warpgroups; rows of b are columns of the product.
__global__ void matmul_wgmma(const __half* a, const __half* b, float* c, int n) {
    extern __shared__ __align__(1024) __half tiles[];
    __half *left = tiles, *right = tiles + 128 * 64;
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    float d[64] = {};
    for (int t = 0; t < n; t += 64) {
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int r = i / 8, k = i % 8, place = r * 8 + (k ^ r % 8);
            reinterpret_cast<int4*>(left)[place] = *reinterpret_cast<const int4*>(a + (blockIdx.y * 128 + r) * n + t + k * 8);
            reinterpret_cast<int4*>(right)[place] = *reinterpret_cast<const int4*>(b + (blockIdx.x * 128 + r) * n + t + k * 8);
        }
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 64; k += 16) multiply(d, describe(left + group * 64 * 64 + k), describe(right + k));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    for (int i = 0; i < 64; ++i)
        c[(blockIdx.y * 128 + group * 64 + thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * n + blockIdx.x * 128 + i / 4 * 8 +
          thread % 4 * 2 + i % 2] = d[i];
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

constexpr int kCount = 1 << 20;

// A sum of the output's bits.
unsigned long long sum_of(const float* output) {
    static unsigned words[4 * kCount];
    cudaMemcpy(words, output, sizeof words, cudaMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (const unsigned word : words) sum = sum * 0x9e3779b97f4a7c15ull + word;
    return sum;
}

const char* only = nullptr;  // the one kernel that is asked for

template <class Launch>
void timed(const char* name, const float* output, Launch launch) {
    if (only != nullptr && std::strcmp(only, name) != 0) return;
    const std::clock_t before = std::clock();
    const auto start = std::chrono::steady_clock::now();
    launch();
    const bool failed = cudaDeviceSynchronize() != cudaSuccess;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const double cpu = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    std::printf("%s %.6f %.6f %016llx\n", failed ? "failed" : name, wall.count(), cpu, sum_of(output));
}

// Numbers in (-1, 1), of which `Number` has few enough that half precision has them, too.
template <class Number>
Number* drawn(int count, unsigned seed) {
    Number* device;
    Number* const host = new Number[count];
    for (int i = 0; i < count; ++i) {
        seed = seed * 1664525 + 1013904223;
        host[i] = Number(float(int(seed >> 20) - 2048) / 2048);
    }
    cudaMalloc(&device, count * sizeof(Number));
    cudaMemcpy(device, host, count * sizeof(Number), cudaMemcpyHostToDevice);
    delete[] host;
    return device;
}

int main(int count, char** arguments) {
    if (count > 1) only = arguments[1];
    constexpr int kSide = 384, kMiddle = 512, kLarge = 1024;
    const float *a = drawn<float>(4 * kCount, 1), *b = drawn<float>(4 * kCount, 2);
    const __half *ha = drawn<__half>(kCount, 3), *hb = drawn<__half>(kCount, 4);
    float* c;
    cudaMalloc(&c, 4 * kCount * sizeof(float));
    cudaMemset(c, 0, 4 * kCount * sizeof(float));
    const dim3 square(16, 16), wide(32, 32), strip(32, 8);
    timed("vector_add", c, [&] { vector_add<<<kCount / 256, 256>>>(a, b, c, kCount); });
    timed("copy_float4", c, [&] { copy_float4<<<264, 256>>>((const float4*)a, (float4*)c, kCount); });
    timed("matmul_naive", c, [&] { matmul_naive<<<dim3(kSide / 16, kSide / 16), square>>>(a, b, c, kSide); });
    timed("matmul_shared", c, [&] { matmul_shared<<<dim3(kMiddle / 32, kMiddle / 32), wide>>>(a, b, c, kMiddle); });
    timed("matmul_registers", c, [&] { matmul_registers<<<dim3(kMiddle / 64, kMiddle / 64), 256>>>(a, b, c, kMiddle); });
    timed("matmul_vectors", c, [&] { matmul_vectors<<<dim3(kMiddle / 128, kMiddle / 128), 256>>>(a, b, c, kMiddle); });
    timed("matmul_tensor", c, [&] { matmul_tensor<<<dim3(kMiddle / 16, kMiddle / 16), 32>>>(ha, hb, c, kMiddle); });
    timed("matmul_mma", c, [&] { matmul_mma<<<dim3(kMiddle / 64, kMiddle / 64), 128>>>(ha, hb, c, kMiddle); });
    cudaFuncSetAttribute(matmul_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, 32768);
    timed("matmul_wgmma", c, [&] { matmul_wgmma<<<dim3(kLarge / 128, kLarge / 128), 256, 32768>>>(ha, hb, c, kLarge); });
    timed("softmax_rows", c, [&] { softmax_rows<<<512, 32>>>(a, c, 2000); });
    timed("gelu_half", c, [&] { gelu_half<<<kCount / 256, 256>>>(ha, (__half*)c, kCount); });
    timed("transpose_tile", c, [&] { transpose_tile<<<dim3(32, 32), strip>>>(a, c, 1024); });
    timed("convolution", c, [&] { convolution<<<dim3(16, 16), square>>>(a, b, c, 256); });
    timed("reduce_shared", c, [&] { reduce_shared<<<264, 256>>>(a, c, kCount); });
}
