// A chain: normalise, project to q k v, attend, project and add; normalise, widen, narrow and add.
#include <kernelblaster/kernels/transformer.cuh>

struct BiasGeluTanh {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return gelu_tanh(sum + to_float(bias[channel]));
    }
};

void launch_gpu_implementation(void* output, void* x, void* ln_1_weight, void* ln_1_bias, void* attn_c_attn_weight,
                               void* attn_c_attn_bias, void* attn_c_proj_weight, void* attn_c_proj_bias,
                               void* ln_2_weight, void* ln_2_bias, void* mlp_c_fc_weight, void* mlp_c_fc_bias,
                               void* mlp_c_proj_weight, void* mlp_c_proj_bias, int64_t batch_size, int64_t seq_len,
                               int64_t n_embd, int64_t n_head) {
    Network net{nullptr};
    const Tokens t{batch_size, seq_len, n_embd};
    const int64_t rows = t.rows();
    scalar_t *normed1 = net.take(t.count()), *qkv = net.take(3 * t.count()), *attended = net.take(t.count());
    scalar_t *normed2 = net.take(t.count()), *wide = net.take(4 * t.count());

    layer_norm(normed1, in(x), rows, n_embd, Affine{in(ln_1_weight), in(ln_1_bias)}, 1e-5f);
    linear(qkv, normed1, in(attn_c_attn_weight), rows, n_embd, 3 * n_embd, Bias{in(attn_c_attn_bias)});
    linear(attended, self_attention(net, qkv, t, n_head, true), in(attn_c_proj_weight), rows, n_embd, n_embd,
           BiasAdd{in(attn_c_proj_bias), in(x)});
    layer_norm(normed2, attended, rows, n_embd, Affine{in(ln_2_weight), in(ln_2_bias)}, 1e-5f);
    linear(wide, normed2, in(mlp_c_fc_weight), rows, n_embd, 4 * n_embd, BiasGeluTanh{in(mlp_c_fc_bias)});
    linear(out(output), wide, in(mlp_c_proj_weight), rows, 4 * n_embd, n_embd,
           BiasAdd{in(mlp_c_proj_bias), attended});
}
