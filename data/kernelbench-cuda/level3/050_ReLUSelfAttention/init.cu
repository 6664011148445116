// One product gives q, k and v of all heads side by side; attention leaves the output as it shall be.
#include <kernelblaster/kernels/attention.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// Rectified scores are the weights, whatever their sum is.
struct RectifiedWeights {
    __device__ float operator()(float* scores, int64_t keys) const {
        for (int64_t key = threadIdx.x; key < keys; key += blockDim.x) scores[key] = relu(scores[key]);
        __syncthreads();
        return 1.0f;
    }
};

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, int64_t batch_size,
                               int64_t seq_len, int64_t n_embd, int64_t n_head) {
    Workspace workspace;
    const int64_t rows = batch_size * seq_len, size = n_embd / n_head, row = 3 * n_embd, sample = seq_len * row;
    scalar_t* qkv = workspace.take(rows * row);
    linear(qkv, in(x), in(c_attn_weight), rows, n_embd, row, Bias{in(c_attn_bias)});
    const Attention shape{batch_size, n_head, seq_len, seq_len, size, rsqrtf(static_cast<float>(size)), true};
    attention(out(output), Heads{out(output), seq_len * n_embd, size, n_embd}, Heads{qkv, sample, size, row},
              Heads{qkv + n_embd, sample, size, row}, Heads{qkv + 2 * n_embd, sample, size, row}, shape, ScaledScore{},
              RectifiedWeights{});
}
