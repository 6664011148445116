// Convolution and linear layer give one token per image; encoder layers; the class tokens' linear layer.
#include <kernelblaster/kernels/transformer.cuh>

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image_size,
                               int64_t num_classes, int64_t embed_dim, int64_t num_heads, int64_t num_layers) {
    Network net{weights};
    const Tokens t{batch_size, 2, embed_dim};
    const scalar_t* token = net.weight();
    const Image patches = conv_bias<Bias>(net, image_of(x, batch_size, 3, image_size, image_size), embed_dim, 4, 4);
    const scalar_t* embedded =
        linear_layer<Bias>(net, patches.data, batch_size, embed_dim * patches.points(), embed_dim);
    scalar_t* tokens = net.take(t.count());
    generate(tokens, t.count(), WithClassToken{token, embedded, nullptr, t.length, embed_dim});
    for (int64_t layer = 0; layer < num_layers; ++layer) {
        tokens = encoder_layer(net, tokens, t, num_heads, 4 * embed_dim);
    }

    const scalar_t* weight = net.weight();
    matmul(out(output), Matrix{tokens, t.length * embed_dim, 1}, Matrix{weight, 1, embed_dim},
           Product{batch_size, num_classes, embed_dim}, Bias{net.weight()});
}
