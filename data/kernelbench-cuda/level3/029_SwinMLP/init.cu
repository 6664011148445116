// Blocks stage after stage: normalised tokens into windows, a product per window and head, back, two linear layers.
#include <kernelblaster/kernels/windows.cuh>

// Takes normalisation, matrices per head and their biases, normalisation, two linear layers.
static void mixing_block(Network& net, TokenImage& x, Windows windows, int64_t heads, int64_t hidden) {
    const int64_t all = x.batch * windows.count(), points = heads * windows.points(), size = x.width / heads;
    const scalar_t* normal = token_norm(net, x.data, x.rows(), x.width);
    scalar_t *in_windows = net.take(all * points * size), *mixed = net.take(all * points * size);
    generate(in_windows, all * points * size, IntoWindows{normal, windows, x.width, heads});
    const scalar_t* weight = net.weight();
    conv(mixed, in_windows, weight, conv2d_shape(all, points, points, 1, size, 1, 1, 0, heads), Bias{net.weight()});

    scalar_t* sum = net.take(x.count());
    generate(sum, x.count(), AddFromWindows{x.data, mixed, windows, x.width, heads});
    const scalar_t* wide =
        linear_layer<BiasGelu>(net, token_norm(net, sum, x.rows(), x.width), x.rows(), x.width, hidden);
    x.data = linear_add(net, wide, x.rows(), hidden, x.width, sum);
}

// The layer's weight comes before the scale and shift that are used first.
static TokenImage merge(Network& net, TokenImage x) {
    const TokenImage both = merge_neighbours(net, x);
    const scalar_t* weight = net.weight();
    const scalar_t* normal = token_norm(net, both.data, both.rows(), both.width);
    const TokenImage y{net.take(both.count() / 2), both.batch, both.side, both.width / 2};
    linear(y.data, normal, weight, y.rows(), both.width, y.width, Plain());
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t channels,
                               int64_t patch_size, int64_t window_size, int64_t head_size, int64_t num_heads,
                               int64_t mlp_ratio, int64_t depth1, int64_t depth2, int64_t depth3, int64_t depth4,
                               int64_t num_classes) {
    const int64_t depths[4] = {depth1, depth2, depth3, depth4}, image = 8 * window_size * patch_size;
    Network net{weights};
    TokenImage y = embed_patches(net, image_of(x, batch_size, channels, image, image), patch_size,
                                 head_size * num_heads);
    for (int stage = 0; stage < 4; ++stage) {
        for (int64_t block = 0; block < depths[stage]; ++block) {
            const int64_t shift = block % 2 == 1 && y.side > window_size ? window_size / 2 : 0;
            mixing_block(net, y, padded_windows(y.side, window_size, shift), num_heads << stage, mlp_ratio * y.width);
        }
        if (stage < 3) y = merge(net, y);
    }
    classify_tokens(net, out(output), y, num_classes);
}
