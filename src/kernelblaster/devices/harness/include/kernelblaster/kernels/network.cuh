// Layers of networks: each takes its weights from the network's, in the order in which they come.
#pragma once
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// A batch of images, (batch, channels, height, width).
struct Image {
    scalar_t* data;
    int64_t batch, channels, height, width;
    int64_t points() const { return height * width; }
    int64_t count() const { return batch * channels * points(); }
};

// An image that a launcher is given.
static Image image_of(void* data, int64_t batch, int64_t channels, int64_t height, int64_t width) {
    return {out(data), batch, channels, height, width};
}

// The weights that are still to come, in the order of the module's state_dict, and memory for what layers leave.
struct Network {
    void* const* weights;
    Workspace workspace;
    const scalar_t* weight() { return in(*weights++); }
    scalar_t* take(int64_t count) { return workspace.take(count); }
    Image image(int64_t batch, int64_t channels, int64_t height, int64_t width) {
        return {workspace.take(batch * channels * height * width), batch, channels, height, width};
    }
};

// What follows a normalisation or a sum: epilogues that look at the value alone, or add an earlier image first.
struct Relu {
    __device__ float operator()(float value, int64_t, int64_t) const { return relu(value); }
};

struct Relu6 {
    __device__ float operator()(float value, int64_t, int64_t) const { return clamp(value, 0.0f, 6.0f); }
};

struct Add {
    const scalar_t* other;
    __device__ float operator()(float value, int64_t index, int64_t) const { return value + to_float(other[index]); }
};

struct AddRelu {
    const scalar_t* other;
    __device__ float operator()(float value, int64_t index, int64_t) const {
        return relu(value + to_float(other[index]));
    }
};

struct ReluAdd {
    const scalar_t* other;
    __device__ float operator()(float value, int64_t index, int64_t) const {
        return relu(value) + to_float(other[index]);
    }
};

// A square convolution by a filter that is given: epilogue(x * weight).
template <typename Epilogue>
static Image convolved(Network& net, Image x, const scalar_t* weight, int64_t channels, int64_t kernel, int64_t stride,
                       int64_t padding, int64_t groups, Epilogue epilogue) {
    const Conv shape =
        conv2d_shape(x.batch, x.channels, channels, x.height, x.width, kernel, stride, padding, groups);
    const Image y = net.image(x.batch, channels, shape.output.h, shape.output.w);
    conv(y.data, x.data, weight, shape, epilogue);
    return y;
}

// Convolution without a bias; takes its weight.
static Image conv_layer(Network& net, Image x, int64_t channels, int64_t kernel, int64_t stride = 1,
                        int64_t padding = 0, int64_t groups = 1) {
    return convolved(net, x, net.weight(), channels, kernel, stride, padding, groups, Plain());
}

// Convolution with a bias, added by Bias or BiasRelu; takes weight and bias.
template <typename Epilogue>
static Image conv_bias(Network& net, Image x, int64_t channels, int64_t kernel, int64_t stride = 1,
                       int64_t padding = 0, int64_t groups = 1) {
    const scalar_t* weight = net.weight();
    return convolved(net, x, weight, channels, kernel, stride, padding, groups, Epilogue{net.weight()});
}

// Batch normalisation with the statistics of the batch, in place; takes scale and shift.
template <typename Epilogue = Plain>
static Image norm_layer(Network& net, Image x, Epilogue epilogue = Epilogue()) {
    const scalar_t* scale = net.weight();
    batch_norm(x.data, x.data, Channels{x.batch, x.channels, x.points()}, Affine{scale, net.weight()}, 1e-5f, epilogue);
    return x;
}

// The same into a new image.
template <typename Epilogue = Plain>
static Image normed(Network& net, Image x, Epilogue epilogue = Epilogue()) {
    const Image y = net.image(x.batch, x.channels, x.height, x.width);
    const scalar_t* scale = net.weight();
    batch_norm(y.data, x.data, Channels{x.batch, x.channels, x.points()}, Affine{scale, net.weight()}, 1e-5f, epilogue);
    return y;
}

// Batch normalisation with statistics that are given, into a new image; takes scale, shift, mean and variance.
template <typename Epilogue = Plain>
static Image normed_given(Network& net, Image x, Epilogue epilogue = Epilogue()) {
    const Image y = net.image(x.batch, x.channels, x.height, x.width);
    const scalar_t *scale = net.weight(), *shift = net.weight(), *mean = net.weight();
    batch_norm_inference(y.data, x.data, mean, net.weight(), Channels{x.batch, x.channels, x.points()},
                         Affine{scale, shift}, 1e-5f, epilogue);
    return y;
}

// Linear layer over `rows` rows, its bias added by Bias or BiasRelu; takes weight and bias.
template <typename Epilogue>
static scalar_t* linear_layer(Network& net, const scalar_t* x, int64_t rows, int64_t in_features,
                              int64_t out_features) {
    scalar_t* y = net.take(rows * out_features);
    const scalar_t* weight = net.weight();
    linear(y, x, weight, rows, in_features, out_features, Epilogue{net.weight()});
    return y;
}

// The network's last linear layer, with a bias.
static void classify(Network& net, scalar_t* output, const scalar_t* x, int64_t rows, int64_t in_features,
                     int64_t classes) {
    const scalar_t* weight = net.weight();
    linear(output, x, weight, rows, in_features, classes, Bias{net.weight()});
}

template <typename Kind>
static Image pool_layer(Network& net, Image x, int64_t kernel, int64_t stride, int64_t padding, Kind kind) {
    const Pool shape = pool2d_shape(x.batch * x.channels, x.height, x.width, kernel, stride, padding);
    const Image y = net.image(x.batch, x.channels, shape.output.h, shape.output.w);
    pool(y.data, x.data, shape, kind);
    return y;
}

// (batch, channels): the mean of each plane.
static scalar_t* global_average(Network& net, Image x) {
    scalar_t* y = net.take(x.batch * x.channels);
    average_planes(y, x.data, x.batch * x.channels, x.points());
    return y;
}

// y[:, first : first + part.channels] = part
__global__ void place_channels_kernel(
    scalar_t* y, const scalar_t* part, int64_t count, int64_t per_sample, int64_t y_sample, int64_t first) {
    for (int64_t i = first_index(); i < count; i += index_step()) {
        y[i / per_sample * y_sample + first + i % per_sample] = part[i];
    }
}

// Copies an image to the channels of another that begin at `first`; returns the channel behind them.
static int64_t place_channels(Image y, int64_t first, Image part) {
    place_channels_kernel<<<blocks_for(part.count()), THREADS>>>(y.data, part.data, part.count(),
                                                                 part.channels * part.points(),
                                                                 y.channels * y.points(), first * y.points());
    check(cudaGetLastError());
    return first + part.channels;
}

// Channels as a matrix of groups x channels of each, transposed.
struct ExchangedChannels {
    const scalar_t* x;
    int64_t channels, groups, points;
    __device__ float operator()(int64_t i) const {
        const int64_t channel = i / points % channels, sample = i / points / channels;
        const int64_t source = channel % groups * (channels / groups) + channel / groups;
        return to_float(x[(sample * channels + source) * points + i % points]);
    }
};

// Each group of channels gets some of every group: ShuffleNet's exchange.
static Image exchange_channels(Network& net, Image x, int64_t groups) {
    const Image y = net.image(x.batch, x.channels, x.height, x.width);
    generate(y.data, y.count(), ExchangedChannels{x.data, x.channels, groups, x.points()});
    return y;
}
