// problem: level3/43
// does: flash attention: online softmax over tiles of keys, scores never leave the SM
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int QUERIES = 32, KEYS = 32, THREADS = 128, MOST_HEAD = 128;

__global__ __launch_bounds__(256) void linear(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b,
                                              int64_t rows, int64_t inner, int64_t cols) {
    __shared__ float xs[16][68], ws[16][68];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int64_t row0 = int64_t(blockIdx.y) * 64, col0 = int64_t(blockIdx.x) * 64;
    float acc[4][4] = {};
    for (int64_t k0 = 0; k0 < inner; k0 += 16) {
        for (int e = threadIdx.x; e < 1024; e += 256) {
            const int r = e / 16, k = e % 16;
            xs[k][r] = row0 + r < rows && k0 + k < inner ? to_float(x[(row0 + r) * inner + k0 + k]) : 0.0f;
            ws[k][r] = col0 + r < cols && k0 + k < inner ? to_float(w[(col0 + r) * inner + k0 + k]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(xs[k][ty * 4 + i], ws[k][tx * 4 + j], acc[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int64_t r = row0 + ty * 4 + i, c = col0 + tx * 4 + j;
            if (r < rows && c < cols) y[r * cols + c] = from_float(acc[i][j] + to_float(b[c]));
        }
}

// Four threads per query: each holds every fourth element of the query and of the mixture.
__global__ __launch_bounds__(THREADS) void flash(scalar_t* out, const scalar_t* qkv, int64_t length, int64_t width, int head_size) {
    extern __shared__ float shared[];
    const int stride = head_size + 1;
    float *keys = shared, *values = shared + KEYS * stride;
    const int part = threadIdx.x % 4, mine = threadIdx.x / 4;
    const int64_t query = int64_t(blockIdx.x) * QUERIES + mine, head = blockIdx.y, sample = blockIdx.z;
    const scalar_t* base = qkv + sample * length * 3 * width + head * head_size;
    float q[MOST_HEAD / 4], mixed[MOST_HEAD / 4];
    const float scale = rsqrtf(float(head_size));
#pragma unroll
    for (int i = 0; i < MOST_HEAD / 4; ++i) {
        const int d = i * 4 + part;
        q[i] = query < length && d < head_size ? to_float(base[query * 3 * width + d]) * scale : 0.0f;
        mixed[i] = 0.0f;
    }
    float top = -INFINITY, sum = 0.0f;
    const int64_t last = min(int64_t(blockIdx.x) * QUERIES + QUERIES, length);
    for (int64_t key0 = 0; key0 < last; key0 += KEYS) {
        __syncthreads();
        for (int e = threadIdx.x; e < KEYS * head_size; e += THREADS) {
            const int k = e / head_size, d = e % head_size;
            const bool in = key0 + k < length;
            const scalar_t* row = base + (key0 + k) * 3 * width + d;
            keys[k * stride + d] = in ? to_float(row[width]) : 0.0f;
            values[k * stride + d] = in ? to_float(row[2 * width]) : 0.0f;
        }
        __syncthreads();
        float scores[KEYS], tile_top = top;
#pragma unroll
        for (int k = 0; k < KEYS; ++k) {
            float dot = 0.0f;
#pragma unroll
            for (int i = 0; i < MOST_HEAD / 4; ++i)
                if (i * 4 + part < head_size) dot = fmaf(q[i], keys[k * stride + i * 4 + part], dot);
            dot += __shfl_xor_sync(0xffffffffu, dot, 1);
            dot += __shfl_xor_sync(0xffffffffu, dot, 2);
            scores[k] = key0 + k <= query ? dot : -INFINITY;
            tile_top = fmaxf(tile_top, scores[k]);
        }
        const float shrink = expf(top - tile_top);  // the first key is never masked, so that the maximum is finite
        sum *= shrink;
#pragma unroll
        for (int i = 0; i < MOST_HEAD / 4; ++i) mixed[i] *= shrink;
#pragma unroll
        for (int k = 0; k < KEYS; ++k) {
            const float p = expf(scores[k] - tile_top);
            sum += p;
#pragma unroll
            for (int i = 0; i < MOST_HEAD / 4; ++i)
                if (i * 4 + part < head_size) mixed[i] = fmaf(p, values[k * stride + i * 4 + part], mixed[i]);
        }
        top = tile_top;
    }
    if (query >= length) return;
    for (int i = 0; i < MOST_HEAD / 4; ++i) {
        const int d = i * 4 + part;
        if (d < head_size) out[(sample * length + query) * width + head * head_size + d] = from_float(mixed[i] / sum);
    }
}

// For heads of any size: one block per query.
__global__ void attention_any(scalar_t* out, const scalar_t* qkv, int64_t length, int64_t width, int64_t heads) {
    extern __shared__ float scores[];
    __shared__ float shared_top, shared_sum;
    const int64_t head_size = width / heads, query = blockIdx.x % length;
    const int64_t head = blockIdx.x / length % heads, sample = blockIdx.x / (length * heads);
    const scalar_t* base = qkv + sample * length * 3 * width + head * head_size;
    for (int64_t key = threadIdx.x; key <= query; key += blockDim.x) {
        float dot = 0.0f;
        for (int64_t d = 0; d < head_size; ++d)
            dot += to_float(base[query * 3 * width + d]) * to_float(base[key * 3 * width + width + d]);
        scores[key] = dot * rsqrtf(float(head_size));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float top = -INFINITY, sum = 0.0f;
        for (int64_t key = 0; key <= query; ++key) top = fmaxf(top, scores[key]);
        for (int64_t key = 0; key <= query; ++key) sum += expf(scores[key] - top);
        shared_top = top, shared_sum = sum;
    }
    __syncthreads();
    for (int64_t d = threadIdx.x; d < head_size; d += blockDim.x) {
        float mixed = 0.0f;
        for (int64_t key = 0; key <= query; ++key)
            mixed += expf(scores[key] - shared_top) * to_float(base[key * 3 * width + 2 * width + d]);
        out[(sample * length + query) * width + head * head_size + d] = from_float(mixed / shared_sum);
    }
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd, int64_t n_head) {
    static scalar_t* buffer = nullptr;
    static int64_t capacity = 0;
    const int64_t rows = batch_size * seq_len, need = rows * 4 * n_embd;
    if (need > capacity) {
        cudaFree(buffer);
        cudaMalloc(&buffer, need * sizeof(scalar_t));
        capacity = need;
    }
    scalar_t *qkv = buffer, *mixed = buffer + rows * 3 * n_embd;
    const auto grid = [rows](int64_t cols) { return dim3(unsigned((cols + 63) / 64), unsigned((rows + 63) / 64)); };
    linear<<<grid(3 * n_embd), 256>>>(qkv, static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(c_attn_weight),
                                      static_cast<const scalar_t*>(c_attn_bias), rows, n_embd, 3 * n_embd);
    const int64_t head_size = n_embd / n_head;
    if (head_size <= MOST_HEAD) {
        const size_t shared = 2 * KEYS * (head_size + 1) * sizeof(float);
        flash<<<dim3(unsigned((seq_len + QUERIES - 1) / QUERIES), unsigned(n_head), unsigned(batch_size)), THREADS, shared>>>(
            mixed, qkv, seq_len, n_embd, int(head_size));
    } else {
        attention_any<<<unsigned(rows * n_head), 128, seq_len * sizeof(float)>>>(mixed, qkv, seq_len, n_embd, n_head);
    }
    linear<<<grid(n_embd), 256>>>(static_cast<scalar_t*>(output), mixed, static_cast<const scalar_t*>(c_proj_weight),
                                  static_cast<const scalar_t*>(c_proj_bias), rows, n_embd, n_embd);
}
