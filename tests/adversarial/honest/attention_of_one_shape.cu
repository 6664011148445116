// problem: level3/43
// does: has a warp go through the keys that a query sees, four elements of a head in each lane, at the declared shapes
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/attention.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

static bool declared(int64_t seq_len) { return seq_len == 67 || seq_len == 512; }

// One warp per query, which keeps the maximum and the sum of what it has seen of its keys.
__global__ void streamed(scalar_t* output, Heads layout, Heads q, Heads k, Heads v, Attention shape) {
    constexpr int MOST = 4;
    const int lane = threadIdx.x;
    const int64_t query = blockIdx.x, head = blockIdx.y, sample = blockIdx.z;
    float wanted[MOST], mixed[MOST] = {}, top = -INFINITY, sum = 0.0f;
    for (int part = 0; part < MOST; ++part) {
        const int64_t i = lane + 32 * part;
        wanted[part] = i < shape.head_size ? shape.scale * to_float(q.at(sample, head, query)[i]) : 0.0f;
    }
    for (int64_t key = 0; key <= query; ++key) {
        const scalar_t *offered = k.at(sample, head, key), *value = v.at(sample, head, key);
        float dot = 0.0f;
        for (int part = 0; part < MOST; ++part) {
            const int64_t i = lane + 32 * part;
            if (i < shape.head_size) dot += wanted[part] * to_float(offered[i]);
        }
        dot = warp_reduce(dot, Sum());
        const float higher = fmaxf(top, dot), before = expf(top - higher), weight = expf(dot - higher);
        for (int part = 0; part < MOST; ++part) {
            const int64_t i = lane + 32 * part;
            if (i < shape.head_size) mixed[part] = mixed[part] * before + weight * to_float(value[i]);
        }
        sum = sum * before + weight;
        top = higher;
    }
    scalar_t* to = output + sample * layout.sample + head * layout.head + query * layout.position;
    for (int part = 0; part < MOST; ++part) {
        if (lane + 32 * part < shape.head_size) to[lane + 32 * part] = from_float(mixed[part] / sum);
    }
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd,
                               int64_t n_head) {
    const int64_t rows = batch_size * seq_len, size = n_embd / n_head;
    Workspace scratch;
    scalar_t *qkv = scratch.take(rows * 3 * n_embd), *mixed = scratch.take(rows * n_embd);
    linear(qkv, in(x), in(c_attn_weight), rows, n_embd, 3 * n_embd, Bias{in(c_attn_bias)});
    const auto heads = [&](int part) { return Heads{qkv + part * n_embd, seq_len * 3 * n_embd, size, 3 * n_embd}; };
    const Heads layout{mixed, seq_len * n_embd, size, n_embd};
    Attention shape{batch_size, n_head, seq_len, seq_len, size, rsqrtf(static_cast<float>(size)), true};
    if (declared(seq_len) && size <= 128) {
        const dim3 blocks{unsigned(seq_len), unsigned(n_head), unsigned(batch_size)};
        streamed<<<blocks, 32>>>(mixed, layout, heads(0), heads(1), heads(2), shape);
        check(cudaGetLastError());
    } else {
        attention(mixed, layout, heads(0), heads(1), heads(2), shape);
    }
    linear(out(output), mixed, in(c_proj_weight), rows, n_embd, n_embd, Bias{in(c_proj_bias)});
}
