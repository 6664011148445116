// Layers of networks that mix the tokens of an image within windows of it.
#pragma once
#include <kernelblaster/kernels/transformer.cuh>

// A batch of square images of tokens, (batch, side, side, width).
struct TokenImage {
    scalar_t* data;
    int64_t batch, side, width;
    int64_t rows() const { return batch * side * side; }
    int64_t count() const { return rows() * width; }
};

// y[sample, point, channel] = x[sample, channel, point]
struct PlanesAsTokens {
    const scalar_t* x;
    int64_t channels, points;
    __device__ float operator()(int64_t i) const {
        const int64_t channel = i % channels, point = i / channels % points, sample = i / channels / points;
        return to_float(x[(sample * channels + channel) * points + point]);
    }
};

// A strided convolution over patches, its pixels as normalised tokens; takes weight and bias, scale and shift.
static TokenImage embed_patches(Network& net, Image x, int64_t patch, int64_t width) {
    const Image planes = conv_bias<Bias>(net, x, width, patch, patch);
    scalar_t* tokens = net.take(planes.count());
    generate(tokens, planes.count(), PlanesAsTokens{planes.data, width, planes.points()});
    return {token_norm(net, tokens, planes.batch * planes.points(), width), x.batch, planes.height, width};
}

// across x across windows of window x window points over an image of side x side pixels. The first window begins at
// row and column `offset`; what lies outside is the other end of the image if `cyclic`, padding otherwise.
struct Windows {
    int64_t side, window, across, offset;
    bool cyclic;
    __host__ __device__ int64_t count() const { return across * across; }
    __host__ __device__ int64_t points() const { return window * window; }
    __device__ int64_t wrapped(int64_t place) const { return cyclic ? (place + side) % side : place; }

    // The pixel under a point of a window; -1 in the padding.
    __device__ int64_t pixel(int64_t number, int64_t point) const {
        const int64_t row = wrapped(number / across * window + point / window + offset);
        const int64_t column = wrapped(number % across * window + point % window + offset);
        const bool inside = row >= 0 && row < side && column >= 0 && column < side;
        return inside ? row * side + column : -1;
    }

    // number * points() + point of the window and point over a pixel.
    __device__ int64_t place(int64_t pixel) const {
        const int64_t row = wrapped(pixel / side - offset), column = wrapped(pixel % side - offset);
        const int64_t number = row / window * across + column / window;
        return number * points() + row % window * window + column % window;
    }
};

// Windows that begin `shift` rows and columns into the image, and continue at its begin.
static Windows cyclic_windows(int64_t side, int64_t window, int64_t shift) {
    return {side, window, side / window, shift, true};
}

// One window more along each axis if they are shifted; the first and last ones reach into padding.
static Windows padded_windows(int64_t side, int64_t window, int64_t shift) {
    const bool shifted = shift > 0;
    return {side, window, side / window + shifted, shifted ? shift - window : 0, false};
}

// (batch, windows, heads, points, width / heads) of (batch, side, side, width); zeros for the padding.
struct IntoWindows {
    const scalar_t* x;
    Windows windows;
    int64_t width, heads;
    __device__ float operator()(int64_t i) const {
        const int64_t size = width / heads, point = i / size % windows.points();
        const int64_t head = i / (size * windows.points()) % heads, window = i / (width * windows.points());
        const int64_t sample = window / windows.count(), pixel = windows.pixel(window % windows.count(), point);
        if (pixel < 0) return 0.0f;
        return to_float(x[(sample * windows.side * windows.side + pixel) * width + head * size + i % size]);
    }
};

// Adds to (batch, side, side, width) what lies in windows as IntoWindows leaves it.
struct AddFromWindows {
    const scalar_t *x, *in_windows;
    Windows windows;
    int64_t width, heads;
    __device__ float operator()(int64_t i) const {
        const int64_t size = width / heads, channel = i % width, pixels = windows.side * windows.side;
        const int64_t sample = i / width / pixels, place = windows.place(i / width % pixels);
        const int64_t window = sample * windows.count() + place / windows.points();
        const int64_t row = (window * heads + channel / size) * windows.points() + place % windows.points();
        return to_float(x[i]) + to_float(in_windows[row * size + channel % size]);
    }
};

// The tokens of 2 x 2 neighbours side by side, down before right: (batch, side / 2, side / 2, 4 * width).
struct MergedNeighbours {
    const scalar_t* x;
    int64_t side, width;
    __device__ float operator()(int64_t i) const {
        const int64_t half = side / 2, token = i / (4 * width), part = i / width % 4;
        const int64_t row = token / half % half * 2 + part % 2, column = token % half * 2 + part / 2;
        return to_float(x[((token / (half * half) * side + row) * side + column) * width + i % width]);
    }
};

// The merged tokens of an image, before the layer that narrows them.
static TokenImage merge_neighbours(Network& net, TokenImage x) {
    const TokenImage y{net.take(x.count()), x.batch, x.side / 2, 4 * x.width};
    generate(y.data, y.count(), MergedNeighbours{x.data, x.side, x.width});
    return y;
}

// Normalises tokens and classifies their mean; takes scale and shift, weight and bias.
static void classify_tokens(Network& net, scalar_t* output, TokenImage x, int64_t classes) {
    const int64_t pixels = x.side * x.side;
    const scalar_t* normal = token_norm(net, x.data, x.rows(), x.width);
    scalar_t* means = net.take(x.batch * x.width);
    reduce_axis(means, normal, AxisView{x.batch, pixels, x.width}, Sum(), Scaled{1.0f / pixels});
    classify(net, output, means, x.batch, x.width, classes);
}
