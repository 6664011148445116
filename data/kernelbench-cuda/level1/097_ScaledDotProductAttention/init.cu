// softmax(Q K^T / sqrt(head_size)) V: one block per sample, head and query.
#include <kernelblaster/kernels/attention.cuh>

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size) {
    const int64_t head = seq_len * head_size, sample = heads * head;
    const Attention shape{batch_size, heads, seq_len, seq_len, head_size, rsqrtf(static_cast<float>(head_size))};
    attention(out(output), Heads{in(output), sample, head, head_size}, Heads{in(Q), sample, head, head_size},
              Heads{in(K), sample, head, head_size}, Heads{in(V), sample, head, head_size}, shape);
}
