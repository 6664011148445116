// Blocks stage after stage: tokens into windows, their products, cosine attention, back; two linear layers. What
// attention and linear layers give is normalised before it is added.
#include <kernelblaster/kernels/windows.cuh>

// biases[head, down, right] = 16 sigmoid(second(relu(first(offset)))), where an offset from 1 - window to window - 1
// counts as sign(v) log8(|v| + 1), v being 8 at its end.
__global__ void position_bias_kernel(float* biases, const scalar_t* first, const scalar_t* first_bias,
                                     const scalar_t* second, int64_t heads, int64_t window, int64_t hidden) {
    const int64_t reach = 2 * window - 1;
    const auto scaled = [&](int64_t step) {
        const float v = (step - (window - 1)) * (8.0f / (window - 1));
        return copysignf(log2f(fabsf(v) + 1.0f) / 3.0f, v);
    };
    for (int64_t i = first_index(); i < heads * reach * reach; i += index_step()) {
        const float down = scaled(i / reach % reach), right = scaled(i % reach);
        const scalar_t* weights = second + i / (reach * reach) * hidden;
        float sum = 0.0f;
        for (int64_t k = 0; k < hidden; ++k) {
            const float inner = to_float(first[2 * k]) * down + to_float(first[2 * k + 1]) * right;
            sum += to_float(weights[k]) * relu(inner + to_float(first_bias[k]));
        }
        biases[i] = 16.0f * sigmoid(sum);
    }
}

// scale cosine + bias of the offset, and -100 between pixels of a window that are no neighbours in the image.
struct WindowScore {
    const scalar_t* logit_scale;
    const float* biases;
    Windows windows;
    __device__ int64_t region(int64_t place) const {
        return (place >= windows.side - windows.window) + (place >= windows.side - windows.offset);
    }
    __device__ float operator()(float cosine, int64_t all, int64_t head, int64_t query, int64_t key) const {
        const int64_t window = windows.window, reach = 2 * window - 1, number = all % windows.count();
        const int64_t down = query / window - key / window + window - 1;
        const int64_t right = query % window - key % window + window - 1;
        const float scale = expf(fminf(to_float(logit_scale[head]), logf(8.0f)));
        const float score = cosine * scale + biases[(head * reach + down) * reach + right];
        if (windows.offset == 0) return score;
        const int64_t row = number / windows.across * window, column = number % windows.across * window;
        const bool together = region(row + query / window) == region(row + key / window) &&
                              region(column + query % window) == region(column + key % window);
        return together ? score : score - 100.0f;
    }
};

// Rows of tokens through their share of the weights of q, k and v.
template <typename Epilogue>
static scalar_t* projected(Network& net, const scalar_t* x, int64_t rows, int64_t width, const scalar_t* weight,
                           Epilogue epilogue) {
    scalar_t* y = net.take(rows * width);
    linear(y, x, weight, rows, width, width, epilogue);
    return y;
}

// Weights: normalisation; scale, biases of q and v, network of offsets, q k v, projection. The normalisation is last.
static scalar_t* attend(Network& net, TokenImage x, Windows windows, int64_t heads, int64_t cpb_hidden) {
    const int64_t size = x.width / heads, reach = 2 * windows.window - 1, width = x.width;
    void* const* w = net.weights;
    net.weights += 11;
    float* biases = net.workspace.take_float(heads * reach * reach);
    position_bias_kernel<<<blocks_for(heads * reach * reach), THREADS>>>(biases, in(w[5]), in(w[6]), in(w[7]), heads,
                                                                         windows.window, cpb_hidden);
    check(cudaGetLastError());

    scalar_t *in_windows = net.take(x.count()), *mixed = net.take(x.count()), *y = net.take(x.count());
    generate(in_windows, x.count(), IntoWindows{x.data, windows, width, 1});
    const scalar_t* weight = in(w[8]);
    scalar_t* q = projected(net, in_windows, x.rows(), width, weight, Bias{in(w[3])});
    scalar_t* k = projected(net, in_windows, x.rows(), width, weight + width * width, Plain());
    scalar_t* v = projected(net, in_windows, x.rows(), width, weight + 2 * width * width, Bias{in(w[4])});
    normalize(q, q, AxisView{x.rows() * heads, size, 1});
    normalize(k, k, AxisView{x.rows() * heads, size, 1});

    const int64_t points = windows.points(), sample = points * width;
    const Attention shape{x.batch * windows.count(), heads, points, points, size, 1.0f};
    attention(mixed, Heads{mixed, sample, size, width}, Heads{q, sample, size, width}, Heads{k, sample, size, width},
              Heads{v, sample, size, width}, shape, WindowScore{in(w[2]), biases, windows});
    scalar_t* out_of = projected(net, mixed, x.rows(), width, in(w[9]), Bias{in(w[10])});
    layer_norm(out_of, out_of, x.rows(), width, Affine{in(w[0]), in(w[1])}, 1e-5f);
    generate(y, x.count(), AddFromWindows{x.data, out_of, windows, width, 1});
    return y;
}

// The scale and shift of the second normalisation come before the linear layers.
static scalar_t* widen_and_narrow(Network& net, const scalar_t* x, int64_t rows, int64_t width, int64_t hidden) {
    const scalar_t* scale = net.weight();
    const Affine affine{scale, net.weight()};
    const scalar_t* wide = linear_layer<BiasGelu>(net, x, rows, width, hidden);
    scalar_t* y = linear_layer<Bias>(net, wide, rows, hidden, width);
    layer_norm(y, y, rows, width, affine, 1e-5f, Add{x});
    return y;
}

static TokenImage merge(Network& net, TokenImage x) {
    const TokenImage both = merge_neighbours(net, x);
    scalar_t* narrower = net.take(both.count() / 2);
    linear(narrower, both.data, net.weight(), both.rows(), both.width, both.width / 2, Plain());
    return {token_norm(net, narrower, both.rows(), both.width / 2), both.batch, both.side, both.width / 2};
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t channels,
                               int64_t patch_size, int64_t window_size, int64_t head_size, int64_t num_heads,
                               int64_t mlp_ratio, int64_t cpb_hidden, int64_t depth1, int64_t depth2, int64_t depth3,
                               int64_t depth4, int64_t num_classes) {
    const int64_t depths[4] = {depth1, depth2, depth3, depth4}, image = 8 * window_size * patch_size;
    Network net{weights};
    TokenImage y = embed_patches(net, image_of(x, batch_size, channels, image, image), patch_size,
                                 head_size * num_heads);
    for (int stage = 0; stage < 4; ++stage) {
        for (int64_t block = 0; block < depths[stage]; ++block) {
            const int64_t shift = block % 2 == 1 && y.side > window_size ? window_size / 2 : 0;
            y.data = attend(net, y, cyclic_windows(y.side, window_size, shift), num_heads << stage, cpb_hidden);
            y.data = widen_and_narrow(net, y.data, y.rows(), y.width, mlp_ratio * y.width);
        }
        if (stage < 3) y = merge(net, y);
    }
    classify_tokens(net, out(output), y, num_classes);
}
