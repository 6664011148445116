// Pixels are read as rows of a transposed matrix; the sum goes into rows, and after its norm back into planes.
#include <kernelblaster/kernels/transformer.cuh>

// y[sample, channel, pixel] = x[sample, pixel, channel]
struct Planes {
    const scalar_t* x;
    int64_t channels, points;
    __device__ float operator()(int64_t i) const {
        const int64_t point = i % points, channel = i / points % channels, sample = i / points / channels;
        return to_float(x[(sample * points + point) * channels + channel]);
    }
};

// Adds the bias and the pixel itself, which lies in planes.
struct BiasAddPlanes {
    const scalar_t *bias, *x;
    int64_t channels, points;
    __device__ float operator()(float sum, int64_t index, int64_t channel) const {
        const int64_t point = index / channels % points, sample = index / channels / points;
        return sum + to_float(bias[channel]) + to_float(x[(sample * channels + channel) * points + point]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* attn_in_proj_weight, void* attn_in_proj_bias,
                               void* attn_out_proj_weight, void* attn_out_proj_bias, void* norm_weight,
                               void* norm_bias, int64_t batch_size, int64_t embed_dim, int64_t num_heads,
                               int64_t height, int64_t width) {
    Network net{nullptr};
    const int64_t points = height * width;
    const Tokens t{batch_size, points, embed_dim};
    scalar_t *qkv = net.take(3 * t.count()), *sum = net.take(t.count());
    matmul(qkv, Matrix{in(x), 1, points, embed_dim * points}, Matrix{in(attn_in_proj_weight), 1, embed_dim},
           Product{points, 3 * embed_dim, embed_dim, batch_size}, Bias{in(attn_in_proj_bias)});
    linear(sum, self_attention(net, qkv, t, num_heads), in(attn_out_proj_weight), t.rows(), embed_dim, embed_dim,
           BiasAddPlanes{in(attn_out_proj_bias), in(x), embed_dim, points});
    layer_norm(sum, sum, t.rows(), embed_dim, Affine{in(norm_weight), in(norm_bias)}, 1e-5f);
    generate(out(output), t.count(), Planes{sum, embed_dim, points});
}
