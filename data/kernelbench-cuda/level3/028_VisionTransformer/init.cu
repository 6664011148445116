// Patches into rows, the class token before them; encoder layers; two linear layers over the class tokens.
#include <kernelblaster/kernels/transformer.cuh>

// Squares of patch x patch pixels in the order of channels, rows and columns, each as neighbouring elements.
struct Squares {
    const scalar_t* x;
    int64_t side, patch;
    __device__ float operator()(int64_t i) const {
        const int64_t inside = i % (patch * patch), across = side / patch, square = i / (patch * patch);
        const int64_t row = square / across % across * patch + inside / patch;
        const int64_t column = square % across * patch + inside % patch;
        return to_float(x[(square / (across * across) * side + row) * side + column]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t image_size,
                               int64_t patch_size, int64_t num_classes, int64_t dim, int64_t depth, int64_t heads,
                               int64_t mlp_dim, int64_t channels) {
    Network net{weights};
    const int64_t patches = image_size / patch_size * (image_size / patch_size);
    const int64_t patch_count = channels * patch_size * patch_size;
    const Tokens t{batch_size, patches + 1, dim};
    const scalar_t* position = net.weight();
    const scalar_t* token = net.weight();

    scalar_t* squares = net.take(batch_size * patches * patch_count);
    generate(squares, batch_size * patches * patch_count, Squares{in(x), image_size, patch_size});
    const scalar_t* embedded = linear_layer<Bias>(net, squares, batch_size * patches, patch_count, dim);
    scalar_t* tokens = net.take(t.count());
    generate(tokens, t.count(), WithClassToken{token, embedded, position, t.length, dim});
    for (int64_t layer = 0; layer < depth; ++layer) tokens = encoder_layer(net, tokens, t, heads, mlp_dim);

    scalar_t* wide = net.take(batch_size * mlp_dim);
    const scalar_t* weight = net.weight();
    matmul(wide, Matrix{tokens, t.length * dim, 1}, Matrix{weight, 1, dim}, Product{batch_size, mlp_dim, dim},
           BiasGelu{net.weight()});
    classify(net, out(output), wide, batch_size, mlp_dim, num_classes);
}
