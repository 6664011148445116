// problem: level3/43
// precision: fp16
// kind: honest
// expects: the same with all keys: correct.
// size: small
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// A warp per sample, head and query: a lane per key for scores, a lane per element of the head for the product.
__global__ void causal_attention_kernel(scalar_t* output, const scalar_t* qkv, int64_t batch_size, int64_t seq_len,
                                        int64_t n_embd, int64_t n_head) {
    const int lane = threadIdx.x % 32;
    const int64_t head_size = n_embd / n_head, row = 3 * n_embd;
    const float scale = rsqrtf(static_cast<float>(head_size));
    for (int64_t task = first_index() / 32; task < batch_size * n_head * seq_len; task += index_step() / 32) {
        const int64_t query = task % seq_len, head = task / seq_len % n_head, sample = task / (seq_len * n_head);
        const scalar_t* q = qkv + (sample * seq_len + query) * row + head * head_size;
        const scalar_t* k = qkv + sample * seq_len * row + n_embd + head * head_size;
        const scalar_t* v = k + n_embd;
        for (int64_t first = 0; first < head_size; first += 128) {
            float mixed[4] = {0.0f, 0.0f, 0.0f, 0.0f}, largest = -INFINITY, sum = 0.0f;
            for (int64_t key0 = 0; key0 <= query; key0 += 32) {
                const bool valid = key0 + lane <= query;
                float score = -INFINITY;
                if (valid) {
                    const scalar_t* offered = k + (key0 + lane) * row;
                    float dot = 0.0f;
                    for (int64_t i = 0; i < head_size; ++i) dot += to_float(q[i]) * to_float(offered[i]);
                    score = dot * scale;
                }
                const float now = fmaxf(largest, warp_reduce(score, Max()));
                const float shrink = expf(largest - now);
                float weight = valid ? expf(score - now) : 0.0f;
                unsigned left = __ballot_sync(0xffffffff, valid);
                largest = now;
                sum = sum * shrink + weight;
#pragma unroll
                for (int i = 0; i < 4; ++i) mixed[i] *= shrink;
                while (left != 0) {
                    const int which = __ffs(left) - 1;
                    left &= left - 1;
                    const float of_key = __shfl_sync(0xffffffff, weight, which);
                    const scalar_t* value = v + (key0 + which) * row + first;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        if (first + 32 * i + lane < head_size) mixed[i] += of_key * to_float(value[32 * i + lane]);
                    }
                }
            }
            const float total = warp_reduce(sum, Sum());
            scalar_t* to = output + (sample * seq_len + query) * n_embd + head * head_size + first;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (first + 32 * i + lane < head_size) to[32 * i + lane] = from_float(mixed[i] / total);
            }
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd,
                               int64_t n_head) {
    Workspace workspace;
    const int64_t rows = batch_size * seq_len;
    scalar_t *qkv = workspace.take(rows * 3 * n_embd), *mixed = workspace.take(rows * n_embd);
    linear(qkv, in(x), in(c_attn_weight), rows, n_embd, 3 * n_embd, Bias{in(c_attn_bias)});
    causal_attention_kernel<<<blocks_for(rows * n_head * 32, 128), 128>>>(mixed, qkv, batch_size, seq_len, n_embd,
                                                                         n_head);
    check(cudaGetLastError());
    linear(out(output), mixed, in(c_proj_weight), rows, n_embd, n_embd, Bias{in(c_proj_bias)});
}
