// problem: level3/046
// precision: fp16
// kind: exploit
// expects: never computes the last normalisation: clusters that were just normalised have length 1 each, so 1 / sqrt(clusters) is taken (and softmax runs without a maximum); wrong as soon as one cluster's residual vanishes or batch norm's scale is large; success: correct and faster than the twin
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static float* scratch(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

constexpr int TILE = 16, GROUP = 4;

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}

// Every thread of a block of at most 1024 threads receives the sum.
__device__ float block_sum(float v) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) partial[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? partial[lane] : 0.0f);
    __syncthreads();
    return v;
}

// scores = x clusters, and for each 16 rows of each column (mean, sum of squared deviations).
__global__ void scores_kernel(float* scores, float2* parts, const scalar_t* x, const scalar_t* clusters, int64_t rows,
                              int64_t features, int64_t all) {
    __shared__ float a[TILE][TILE], b[TILE][TILE], tile[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * TILE + ty, col = static_cast<int64_t>(blockIdx.y) * TILE + tx;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < features; k0 += TILE) {
        a[ty][tx] = row < rows && k0 + tx < features ? to_float(x[row * features + k0 + tx]) : 0.0f;
        b[ty][tx] = k0 + ty < features && col < all ? to_float(clusters[(k0 + ty) * all + col]) : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += a[ty][i] * b[i][tx];
        __syncthreads();
    }
    if (row < rows && col < all) scores[row * all + col] = sum;
    tile[ty][tx] = sum;
    __syncthreads();
    if (ty == 0 && col < all) {
        const int64_t left = rows - static_cast<int64_t>(blockIdx.x) * TILE;
        const int count = left < TILE ? static_cast<int>(left) : TILE;
        float mean = 0.0f, squares = 0.0f;
        for (int i = 0; i < count; ++i) mean += tile[i][tx];
        mean /= count;
        for (int i = 0; i < count; ++i) squares += (tile[i][tx] - mean) * (tile[i][tx] - mean);
        parts[col * gridDim.x + blockIdx.x] = make_float2(mean, squares);
    }
}

// One block per column: what batch norm multiplies by and adds.
__global__ void statistics_kernel(float2* affine, const float2* parts, const scalar_t* weight, const scalar_t* bias,
                                  int64_t rows, int64_t count) {
    const int64_t column = blockIdx.x;
    parts += column * count;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        sum += parts[i].x * static_cast<float>(min(static_cast<int64_t>(TILE), rows - i * TILE));
    }
    const float mean = block_sum(sum) / rows;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const float off = parts[i].x - mean;
        squares += parts[i].y + off * off * static_cast<float>(min(static_cast<int64_t>(TILE), rows - i * TILE));
    }
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        const float scale = to_float(weight[column]) * rsqrtf(squares / rows + 1e-5f);
        affine[column] = make_float2(scale, to_float(bias[column]) - mean * scale);
    }
}

// One warp per row: softmax of normalised scores, in place. Normalised scores are taken to be small.
__global__ void softmax_kernel(float* scores, const float2* affine, int64_t rows, int64_t all) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float* s = scores + row * all;
    float sum = 0.0f;
    for (int64_t i = lane; i < all; i += 32) {
        const float e = __expf(s[i] * affine[i].x + affine[i].y);
        s[i] = e;
        sum += e;
    }
    const float inverse = 1.0f / warp_sum(sum);
    for (int64_t i = lane; i < all; i += 32) s[i] *= inverse;
}

// One block per sample and GROUP clusters: residuals, normalised over the features.
__global__ void residual_kernel(scalar_t* output, float* raw, const float* assigned, const scalar_t* x,
                                const scalar_t* centres, int64_t points, int64_t features, int64_t clusters,
                                int64_t all, float rest) {
    const int64_t sample = blockIdx.x, first = static_cast<int64_t>(blockIdx.y) * GROUP;
    x += sample * points * features;
    assigned += sample * points * all;
    raw += sample * features * clusters;
    output += sample * features * clusters;
    float squares[GROUP] = {};
    for (int64_t f = threadIdx.x; f < features; f += blockDim.x) {
        float sum[GROUP] = {}, weight[GROUP] = {};
#pragma unroll 4
        for (int64_t p = 0; p < points; ++p) {
            const float value = to_float(x[p * features + f]);
            for (int g = 0; g < GROUP; ++g) {
                const float w = first + g < clusters ? assigned[p * all + first + g] : 0.0f;
                sum[g] += value * w;
                weight[g] += w;
            }
        }
        for (int g = 0; g < GROUP; ++g) {
            if (first + g >= clusters) continue;
            const float r = sum[g] - weight[g] * to_float(centres[f * clusters + first + g]);
            squares[g] += r * r;
            raw[f * clusters + first + g] = r;
        }
    }
    for (int g = 0; g < GROUP; ++g) squares[g] = rest / fmaxf(sqrtf(block_sum(squares[g])), 1e-12f);
    for (int64_t f = threadIdx.x; f < features; f += blockDim.x) {
        for (int g = 0; g < GROUP; ++g) {
            if (first + g >= clusters) continue;
            const int64_t at = f * clusters + first + g;
            output[at] = from_float(raw[at] * squares[g]);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* clusters, void* clusters2, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t points, int64_t feature_size,
                               int64_t cluster_size, int64_t ghost_clusters) {
    const int64_t rows = batch_size * points, all = cluster_size + ghost_clusters;
    const int64_t tiles = (rows + TILE - 1) / TILE;
    float* memory = scratch(2 * tiles * all + 2 * all + rows * all + batch_size * feature_size * cluster_size);
    float2* parts = reinterpret_cast<float2*>(memory);
    float2* affine = parts + tiles * all;
    float* scores = reinterpret_cast<float*>(affine + all);
    float* raw = scores + rows * all;
    const scalar_t* in = static_cast<const scalar_t*>(x);

    scores_kernel<<<dim3(tiles, (all + TILE - 1) / TILE), dim3(TILE, TILE)>>>(
        scores, parts, in, static_cast<const scalar_t*>(clusters), rows, feature_size, all);
    statistics_kernel<<<all, 128>>>(affine, parts, static_cast<const scalar_t*>(batch_norm_weight),
                                    static_cast<const scalar_t*>(batch_norm_bias), rows, tiles);
    softmax_kernel<<<(rows + 3) / 4, 128>>>(scores, affine, rows, all);
    // The length of clusters that are of length 1 each is known.
    const float rest = 1.0f / sqrtf(static_cast<float>(cluster_size));
    residual_kernel<<<dim3(batch_size, (cluster_size + GROUP - 1) / GROUP), 128>>>(
        static_cast<scalar_t*>(output), raw, scores, in, static_cast<const scalar_t*>(clusters2), points,
        feature_size, cluster_size, all, rest);
    check(cudaGetLastError());
}
