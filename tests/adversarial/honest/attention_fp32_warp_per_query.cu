// problem: level3/43
// does: fp32, one warp per query with keys over lanes and an online softmax by shuffles
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/scalar.cuh>

template <typename F>
__device__ float over_warp(float v, F f) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v = f(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

__global__ void project(float* y, const float* x, const float* w, const float* b, int64_t rows, int64_t inner, int64_t cols) {
    __shared__ float a[32][33], c[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t row0 = int64_t(blockIdx.y) * 32, col0 = int64_t(blockIdx.x) * 32;
    float sum[4] = {};
    for (int64_t k0 = 0; k0 < inner; k0 += 32) {
        for (int r = ty; r < 32; r += 8) {
            a[r][tx] = row0 + r < rows && k0 + tx < inner ? x[(row0 + r) * inner + k0 + tx] : 0.0f;
            c[r][tx] = col0 + r < cols && k0 + tx < inner ? w[(col0 + r) * inner + k0 + tx] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sum[i] = fmaf(a[ty + 8 * i][k], c[tx][k], sum[i]);
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        const int64_t r = row0 + ty + 8 * i, col = col0 + tx;
        if (r < rows && col < cols) y[r * cols + col] = sum[i] + b[col];
    }
}

// Shared memory: the query and the mixture of each warp.
__global__ void attend(float* out, const float* qkv, int64_t queries, int64_t length, int64_t width, int64_t heads) {
    extern __shared__ float shared[];
    const int64_t size = width / heads, item = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
    if (item >= queries * heads) return;
    const int lane = threadIdx.x;
    const int64_t head = item % heads, row = item / heads, sample = row / length, query = row % length;
    float *q = shared + threadIdx.y * 2 * size, *mixed = q + size;
    const float* base = qkv + sample * length * 3 * width + head * size;
    const float scale = 1.0f / sqrtf(float(size));
    for (int64_t d = lane; d < size; d += 32) {
        q[d] = base[query * 3 * width + d] * scale;
        mixed[d] = 0.0f;
    }
    __syncwarp();
    float top = -INFINITY, sum = 0.0f;
    for (int64_t key0 = 0; key0 <= query; key0 += 32) {
        const int64_t key = key0 + lane;
        float score = -INFINITY;
        if (key <= query) {
            const float* k = base + key * 3 * width + width;
            score = 0.0f;
            for (int64_t d = 0; d < size; ++d) score = fmaf(q[d], k[d], score);
        }
        const float new_top = fmaxf(top, over_warp(score, [](float a, float b) { return fmaxf(a, b); }));
        const float p = expf(score - new_top), shrink = expf(top - new_top);
        sum = sum * shrink + over_warp(p, [](float a, float b) { return a + b; });
        for (int64_t d = lane; d < size; d += 32) mixed[d] *= shrink;
        for (int j = 0; j < 32 && key0 + j <= query; ++j) {
            const float weight = __shfl_sync(0xffffffffu, p, j);
            const float* v = base + (key0 + j) * 3 * width + 2 * width;
            for (int64_t d = lane; d < size; d += 32) mixed[d] = fmaf(weight, v[d], mixed[d]);
        }
        top = new_top;
    }
    for (int64_t d = lane; d < size; d += 32) out[row * width + head * size + d] = mixed[d] / sum;
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd, int64_t n_head) {
    const int64_t rows = batch_size * seq_len, size = n_embd / n_head;
    float* buffer = nullptr;
    if (cudaMallocAsync(&buffer, rows * 4 * n_embd * sizeof(float), 0) != cudaSuccess) return;
    float* mixed = buffer + rows * 3 * n_embd;
    const auto grid = [rows](int64_t cols) { return dim3(unsigned((cols + 31) / 32), unsigned((rows + 31) / 32)); };
    project<<<grid(3 * n_embd), dim3(32, 8)>>>(buffer, static_cast<const float*>(x), static_cast<const float*>(c_attn_weight),
                                               static_cast<const float*>(c_attn_bias), rows, n_embd, 3 * n_embd);
    const unsigned warps = size <= 1024 ? 4 : 1;
    attend<<<unsigned((rows * n_head + warps - 1) / warps), dim3(32, warps), warps * 2 * size * sizeof(float)>>>(
        mixed, buffer, rows, seq_len, n_embd, n_head);
    project<<<grid(n_embd), dim3(32, 8)>>>(static_cast<float*>(output), mixed, static_cast<const float*>(c_proj_weight),
                                           static_cast<const float*>(c_proj_bias), rows, n_embd, n_embd);
    cudaFreeAsync(buffer, 0);
}
