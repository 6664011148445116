#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int TILE = 16, AHEAD = 4, PARTS = 4;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void linear_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias, int64_t rows,
    int64_t in_features, int64_t out_features) {
    __shared__ float x_tile[TILE][TILE];
    __shared__ float weight_tile[TILE][TILE + 1];  // padded: threads of a warp read down a column
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + ty;
    const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + tx;
    const int64_t weight_row = static_cast<int64_t>(blockIdx.x) * TILE + ty;

    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < in_features; k0 += TILE) {
        const int64_t k = k0 + tx;
        x_tile[ty][tx] = row < rows && k < in_features ? to_float(x[row * in_features + k]) : 0.0f;
        weight_tile[ty][tx] =
            weight_row < out_features && k < in_features ? to_float(weight[weight_row * in_features + k]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += x_tile[ty][i] * weight_tile[tx][i];
        __syncthreads();
    }
    if (row < rows && col < out_features) {
        output[row * out_features + col] = from_float(sum + to_float(bias[col]));
    }
}

// One warp per (sample, head, query): 32 keys at a time, a lane for each key's score, then a lane for each element of
// the values. `qkv` rows hold q, k and v of all heads side by side.
__global__ void attention_kernel(
    scalar_t* output, const scalar_t* qkv, int64_t queries, int64_t seq_len, int64_t n_embd, int64_t n_head) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (index >= queries) return;
    const int64_t head_size = n_embd / n_head, pitch = 3 * n_embd;
    const int64_t query = index % seq_len, head = index / seq_len % n_head, sample = index / (seq_len * n_head);
    const scalar_t* q = qkv + (sample * seq_len + query) * pitch + head * head_size;
    const scalar_t* k = qkv + sample * seq_len * pitch + n_embd + head * head_size;
    const scalar_t* v = k + n_embd;
    output += (sample * seq_len + query) * n_embd + head * head_size;
    const float scale = rsqrtf(static_cast<float>(head_size));

    for (int64_t part = 0; part < head_size; part += 32 * PARTS) {
        float mixed[PARTS] = {}, maximum = -INFINITY, sum = 0.0f;
        for (int64_t key0 = 0; key0 <= query; key0 += 32) {
            const int64_t key = key0 + lane;
            float score = -INFINITY;
            if (key <= query) {
                float dot = 0.0f;
                const scalar_t* own = k + key * pitch;
#pragma unroll 4
                for (int64_t i = 0; i < head_size; ++i) dot += to_float(q[i]) * to_float(own[i]);
                score = dot * scale;
            }
            float highest = score;
            for (int o = 16; o > 0; o /= 2) highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, o));
            highest = fmaxf(highest, maximum);
            const float kept = expf(maximum - highest), weight = expf(score - highest);
            maximum = highest;
            sum = sum * kept + weight;
            for (int e = 0; e < PARTS; ++e) mixed[e] *= kept;

            unsigned todo = __ballot_sync(0xffffffff, key <= query);
            while (todo != 0) {
                float of[AHEAD];
                float values[AHEAD][PARTS];
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
                    const int source = todo != 0 ? __ffs(todo) - 1 : 0;
                    of[a] = __shfl_sync(0xffffffff, weight, source);
                    const bool real = todo != 0;
                    todo &= todo - 1;
                    const scalar_t* row = v + (key0 + source) * pitch + part;
#pragma unroll
                    for (int e = 0; e < PARTS; ++e) {
                        values[a][e] = real && part + lane + 32 * e < head_size ? to_float(row[lane + 32 * e]) : 0.0f;
                    }
                }
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
                    for (int e = 0; e < PARTS; ++e) mixed[e] += of[a] * values[a][e];
                }
            }
        }
        for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
        for (int e = 0; e < PARTS; ++e) {
            const int64_t i = part + lane + 32 * e;
            if (i < head_size) output[i] = from_float(mixed[e] / sum);
        }
    }
}

// Grown on demand and kept, so that later calls allocate nothing.
static scalar_t* workspace(int64_t count) {
    static scalar_t* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(scalar_t)));
        capacity = count;
    }
    return buffer;
}

static void linear(scalar_t* output, const scalar_t* x, const void* weight, const void* bias, int64_t rows,
                   int64_t in_features, int64_t out_features) {
    const dim3 blocks((out_features + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    linear_kernel<<<blocks, dim3(TILE, TILE)>>>(output, x, static_cast<const scalar_t*>(weight),
                                                static_cast<const scalar_t*>(bias), rows, in_features, out_features);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd,
                               int64_t n_head) {
    const int64_t rows = batch_size * seq_len, queries = rows * n_head;
    scalar_t* qkv = workspace(rows * 4 * n_embd);
    scalar_t* mixed = qkv + rows * 3 * n_embd;
    linear(qkv, static_cast<const scalar_t*>(x), c_attn_weight, c_attn_bias, rows, n_embd, 3 * n_embd);
    attention_kernel<<<(queries + 3) / 4, 128>>>(mixed, qkv, queries, seq_len, n_embd, n_head);
    check(cudaGetLastError());
    linear(static_cast<scalar_t*>(output), mixed, c_proj_weight, c_proj_bias, rows, n_embd, n_embd);
}
