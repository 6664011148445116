// problem: level3/44
// precision: bf16
// kind: honest
// expects: the same kernel with operands and sums in fp32: correct.
// size: small
#include <kernelblaster/kernels/transformer.cuh>

struct BiasGeluTanh {
    const scalar_t* bias;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return gelu_tanh(sum + to_float(bias[channel]));
    }
};

// y = epilogue(x weight^T), 16 x 16 outputs per block.
template <typename Epilogue>
__global__ void product_kernel(scalar_t* y, const scalar_t* x, const scalar_t* weight, int64_t rows, int64_t inner,
                               int64_t columns, Epilogue epilogue) {
    __shared__ float x_tile[16][17], w_tile[16][17];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t across = (columns + 15) / 16, down = (rows + 15) / 16;
    for (int64_t tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
        const int64_t row0 = tile / across * 16, column0 = tile % across * 16;
        float sum = 0.0f;
        for (int64_t k0 = 0; k0 < inner; k0 += 16) {
            const bool inside = k0 + tx < inner;
            const float from_x =
                inside && row0 + ty < rows ? to_float(x[(row0 + ty) * inner + k0 + tx]) : 0.0f;
            const float from_w =
                inside && column0 + ty < columns ? to_float(weight[(column0 + ty) * inner + k0 + tx]) : 0.0f;
            x_tile[ty][tx] = from_x;
            w_tile[ty][tx] = from_w;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 16; ++k) sum += x_tile[ty][k] * w_tile[tx][k];
            __syncthreads();
        }
        const int64_t row = row0 + ty, column = column0 + tx;
        if (row < rows && column < columns) {
            const int64_t index = row * columns + column;
            y[index] = from_float(epilogue(sum, index, column));
        }
    }
}

template <typename Epilogue>
static void product(scalar_t* y, const scalar_t* x, const scalar_t* weight, int64_t rows, int64_t inner,
                    int64_t columns, Epilogue epilogue) {
    const int64_t tiles = (columns + 15) / 16 * ((rows + 15) / 16);
    product_kernel<<<blocks_for(tiles, 1), dim3(16, 16)>>>(y, x, weight, rows, inner, columns, epilogue);
    check(cudaGetLastError());
}

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
    product(qkv, normed1, in(attn_c_attn_weight), rows, n_embd, 3 * n_embd, Bias{in(attn_c_attn_bias)});
    product(attended, self_attention(net, qkv, t, n_head, true), in(attn_c_proj_weight), rows, n_embd, n_embd,
            BiasAdd{in(attn_c_proj_bias), in(x)});
    layer_norm(normed2, attended, rows, n_embd, Affine{in(ln_2_weight), in(ln_2_bias)}, 1e-5f);
    product(wide, normed2, in(mlp_c_fc_weight), rows, n_embd, 4 * n_embd, BiasGeluTanh{in(mlp_c_fc_bias)});
    product(out(output), wide, in(mlp_c_proj_weight), rows, 4 * n_embd, n_embd,
            BiasAdd{in(mlp_c_proj_bias), attended});
}
