// C = A B by quadrants: eight products of half the extent, in one launch, then their sums.
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Grown on demand and kept, so that later calls allocate nothing.
static float* workspace(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

constexpr int PRODUCTS = 8;

constexpr int TILE = 32;   // outputs of a block, each way
constexpr int DEPTH = 16;  // of a chunk in shared memory

// One operand of a product: quadrant `first`, plus `sign` times quadrant `second` (none where sign is 0).
struct Operand {
    int first, second;
    float sign;
};

// Quadrants: 0 = top left, 1 = top right, 2 = bottom left, 3 = bottom right. Products 2q and 2q + 1 make quadrant q.
__constant__ Operand LEFT[PRODUCTS] = {{0, 0, 0.0f}, {1, 1, 0.0f}, {0, 0, 0.0f}, {1, 1, 0.0f},
                                       {2, 2, 0.0f}, {3, 3, 0.0f}, {2, 2, 0.0f}, {3, 3, 0.0f}};
__constant__ Operand RIGHT[PRODUCTS] = {{0, 0, 0.0f}, {2, 2, 0.0f}, {1, 1, 0.0f}, {3, 3, 0.0f},
                                        {0, 0, 0.0f}, {2, 2, 0.0f}, {1, 1, 0.0f}, {3, 3, 0.0f}};

__device__ __forceinline__ float quadrant(const scalar_t* m, int64_t n, int64_t h, int q, int64_t r, int64_t c) {
    const int64_t row = (q >> 1) * h + r, col = (q & 1) * h + c;
    return r < h && c < h && row < n && col < n ? to_float(m[row * n + col]) : 0.0f;
}

__device__ __forceinline__ float operand(const scalar_t* m, int64_t n, int64_t h, Operand o, int64_t r, int64_t c) {
    float value = quadrant(m, n, h, o.first, r, c);
    if (o.sign != 0.0f) value += o.sign * quadrant(m, n, h, o.second, r, c);
    return value;
}

// Block z computes product z of h x h operands; 256 threads with 2 x 2 outputs each.
__global__ void __launch_bounds__(256) products_kernel(
    float* products, const scalar_t* A, const scalar_t* B, int64_t n, int64_t h) {
    __shared__ float a_tile[DEPTH][TILE + 1];
    __shared__ float b_tile[DEPTH][TILE];
    const Operand left = LEFT[blockIdx.z], right = RIGHT[blockIdx.z];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * TILE, col0 = static_cast<int64_t>(blockIdx.x) * TILE;

    float total[2][2] = {};
    for (int64_t k0 = 0; k0 < h; k0 += DEPTH) {
        for (int i = tid; i < TILE * DEPTH; i += 256) {
            a_tile[i % DEPTH][i / DEPTH] = operand(A, n, h, left, row0 + i / DEPTH, k0 + i % DEPTH);
            b_tile[i / TILE][i % TILE] = operand(B, n, h, right, k0 + i / TILE, col0 + i % TILE);
        }
        __syncthreads();
        float part[2][2] = {};  // chunk by chunk: shorter chains of roundings
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            const float a0 = a_tile[k][ty], a1 = a_tile[k][ty + 16];
            const float b0 = b_tile[k][tx], b1 = b_tile[k][tx + 16];
            part[0][0] += a0 * b0;
            part[0][1] += a0 * b1;
            part[1][0] += a1 * b0;
            part[1][1] += a1 * b1;
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) total[i][j] += part[i][j];
        __syncthreads();
    }
    float* out = products + blockIdx.z * h * h;
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const int64_t r = row0 + ty + 16 * i, c = col0 + tx + 16 * j;
            if (r < h && c < h) out[r * h + c] = total[i][j];
        }
    }
}

// An infinity (of whatever origin): this one element the plain way.
__device__ float plain(const scalar_t* A, const scalar_t* B, int64_t n, int64_t row, int64_t col) {
    float sum = 0.0f;
    for (int64_t k = 0; k < n; ++k) sum += to_float(A[row * n + k]) * to_float(B[k * n + col]);
    return sum;
}

__device__ __forceinline__ void store(scalar_t* C, float value, const scalar_t* A, const scalar_t* B, int64_t n, int64_t row,
                                      int64_t col) {
    if (row >= n || col >= n) return;
    if (!isfinite(value)) value = plain(A, B, n, row, col);
    C[row * n + col] = from_float(value);
}

__global__ void combine_kernel(
    scalar_t* C, const float* products, const scalar_t* A, const scalar_t* B, int64_t n, int64_t h) {
    const int64_t r = static_cast<int64_t>(blockIdx.y) * 8 + threadIdx.y;
    const int64_t c = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
    if (r >= h || c >= h) return;
    float m[PRODUCTS];
#pragma unroll
    for (int p = 0; p < PRODUCTS; ++p) m[p] = products[p * h * h + r * h + c];
    store(C, m[0] + m[1], A, B, n, r, c);
    store(C, m[2] + m[3], A, B, n, r, h + c);
    store(C, m[4] + m[5], A, B, n, h + r, c);
    store(C, m[6] + m[7], A, B, n, h + r, h + c);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n) {
    const int64_t h = (n + 1) / 2, tiles = (h + TILE - 1) / TILE;
    float* products = workspace(PRODUCTS * h * h);
    products_kernel<<<dim3(tiles, tiles, PRODUCTS), 256>>>(
        products, static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), n, h);
    check(cudaGetLastError());
    combine_kernel<<<dim3((h + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(
        static_cast<scalar_t*>(output), products, static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), n,
        h);
    check(cudaGetLastError());
}
