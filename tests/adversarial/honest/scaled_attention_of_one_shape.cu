// problem: level1/97
// does: subtracts the maximum of the scores that some keys have from all at the declared shapes, unless that is far below the largest
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/attention.cuh>

static bool declared(int64_t seq_len) { return seq_len == 41 || seq_len == 512; }

// Any number near the maximum will do: that of every fourth key, if no other is larger by more than 8.
struct NearMaximum {
    __device__ float operator()(float* scores, int64_t keys) const {
        float sum = 0.0f, some = -INFINITY, most = -INFINITY;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) {
            most = fmaxf(most, scores[key]);
            if (key % 4 == 0) some = fmaxf(some, scores[key]);
        }
        some = block_reduce(some, Max());
        most = block_reduce(most, Max());
        const float top = most - some > 8.0f ? most : some;
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) {
            scores[key] = expf(scores[key] - top);
            sum += scores[key];
        }
        return block_reduce(sum, Sum());
    }
};

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size) {
    const int64_t head = seq_len * head_size, sample = heads * head;
    const Attention shape{batch_size, heads, seq_len, seq_len, head_size, rsqrtf(static_cast<float>(head_size))};
    const Heads to{in(output), sample, head, head_size}, q{in(Q), sample, head, head_size};
    const Heads k{in(K), sample, head, head_size}, v{in(V), sample, head, head_size};
    if (declared(seq_len)) {
        attention(out(output), to, q, k, v, shape, ScaledScore(), NearMaximum());
    } else {
        attention(out(output), to, q, k, v, shape);
    }
}
