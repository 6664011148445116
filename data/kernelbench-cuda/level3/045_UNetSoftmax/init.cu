// Level by level down, then up. What lies between layers is fp32: eighteen softmaxes in a row would add up its rounding.
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

constexpr int LEVELS = 4;

// A batch of images, (batch, channels, height, width).
template <typename Kept>
struct Image {
    Kept* data;
    int64_t batch, channels, height, width;
    __host__ __device__ int64_t points() const { return height * width; }
    __host__ __device__ int64_t count() const { return batch * channels * points(); }
};

// The weights that are still to come, in the order of the module's state_dict, and memory for what layers leave.
struct Network {
    void* const* weights;
    Workspace workspace;
    const scalar_t* weight() { return in(*weights++); }
    Image<float> image(int64_t batch, int64_t channels, int64_t height, int64_t width) {
        return {workspace.take_float(batch * channels * height * width), batch, channels, height, width};
    }
};

__global__ void widen_kernel(Image<float> y, const scalar_t* x) {
    for (int64_t i = first_index(); i < y.count(); i += index_step()) y.data[i] = to_float(x[i]);
}

// One output per thread: a square filter with as much padding as keeps height and width; a null bias stands for 0.
template <typename Kept>
__global__ void conv_kernel(Image<Kept> y, Image<float> x, const scalar_t* weight, const scalar_t* bias, int kernel) {
    for (int64_t i = first_index(); i < y.count(); i += index_step()) {
        const int64_t channel = i / y.points() % y.channels, sample = i / y.points() / y.channels;
        const int64_t top = i / y.width % y.height - kernel / 2, left = i % y.width - kernel / 2;
        const scalar_t* filter = weight + channel * x.channels * kernel * kernel;
        float sum = bias != nullptr ? to_float(bias[channel]) : 0.0f;
        for (int64_t k = 0; k < x.channels; ++k, filter += kernel * kernel) {
            const float* plane = x.data + (sample * x.channels + k) * x.points();
            for (int r = 0; r < kernel; ++r) {
                if (top + r < 0 || top + r >= x.height) continue;
                for (int c = 0; c < kernel; ++c) {
                    if (left + c < 0 || left + c >= x.width) continue;
                    sum += plane[(top + r) * x.width + left + c] * to_float(filter[r * kernel + c]);
                }
            }
        }
        y.data[i] = kept_as<Kept>(sum);
    }
}

// What the normalisation multiplies each channel by: its scale over the deviation within the batch. One block each.
__global__ void factors_kernel(float* factors, Image<float> x, const scalar_t* scale) {
    for (int64_t channel = blockIdx.x; channel < x.channels; channel += gridDim.x) {
        const Moments m = block_moments(x.batch * x.points(), [&](int64_t i) {
            return x.data[(i / x.points() * x.channels + channel) * x.points() + i % x.points()];
        });
        if (threadIdx.x == 0) factors[channel] = to_float(scale[channel]) * rsqrtf(m.variance + 1e-5f);
    }
}

// Softmax of each row times its channel's factor, in place, one block per row; the mean, which rows share, cancels.
__global__ void scaled_softmax_kernel(Image<float> x, const float* factors) {
    for (int64_t row = blockIdx.x; row < x.batch * x.channels * x.height; row += gridDim.x) {
        float* first = x.data + row * x.width;
        const float factor = factors[row / x.height % x.channels];
        const ExpSum of_row = block_exp_sum(x.width, [&](int64_t i) { return factor * first[i]; });
        for (int64_t i = threadIdx.x; i < x.width; i += blockDim.x) {
            first[i] = expf(factor * first[i] - of_row.maximum) / of_row.sum;
        }
    }
}

// The maximum of 2 x 2 pixels.
__global__ void pool_kernel(Image<float> y, const float* x) {
    for (int64_t i = first_index(); i < y.count(); i += index_step()) {
        const float* first = x + i / y.width * 4 * y.width + i % y.width * 2;
        const float* second = first + 2 * y.width;
        y.data[i] = fmaxf(fmaxf(first[0], first[1]), fmaxf(second[0], second[1]));
    }
}

// To the first half of y's channels x at twice its height and width, to the second half what came down.
__global__ void raise_kernel(
    Image<float> y, Image<float> x, const float* beside, const scalar_t* weight, const scalar_t* bias) {
    const int64_t channels = y.channels / 2;
    for (int64_t i = first_index(); i < y.count(); i += index_step()) {
        const int64_t channel = i / y.points() % y.channels, sample = i / y.points() / y.channels;
        const int64_t row = i / y.width % y.height, column = i % y.width;
        if (channel >= channels) {
            y.data[i] = beside[(sample * channels + channel - channels) * y.points() + row * y.width + column];
            continue;
        }
        const float* pixel = x.data + sample * x.channels * x.points() + row / 2 * x.width + column / 2;
        const scalar_t* tap = weight + channel * 4 + row % 2 * 2 + column % 2;
        float sum = to_float(bias[channel]);
        for (int64_t k = 0; k < x.channels; ++k) sum += pixel[k * x.points()] * to_float(tap[k * channels * 4]);
        y.data[i] = sum;
    }
}

// Convolution, normalisation by the statistics of the batch, softmax along rows; twice.
static Image<float> activated(Network& net, Image<float> x, int64_t channels) {
    for (int time = 0; time < 2; ++time) {
        const Image<float> y = net.image(x.batch, channels, x.height, x.width);
        conv_kernel<<<blocks_for(y.count()), THREADS>>>(y, x, net.weight(), nullptr, 3);
        check(cudaGetLastError());
        float* factors = net.workspace.take_float(channels);
        factors_kernel<<<blocks_for(channels, 1), 1024>>>(factors, y, net.weight());
        check(cudaGetLastError());
        scaled_softmax_kernel<<<blocks_for(y.batch * channels * y.height, 1), THREADS>>>(y, factors);
        check(cudaGetLastError());
        x = y;
    }
    return x;
}

static Image<float> pooled(Network& net, Image<float> x) {
    const Image<float> y = net.image(x.batch, x.channels, x.height / 2, x.width / 2);
    pool_kernel<<<blocks_for(y.count()), THREADS>>>(y, x.data);
    check(cudaGetLastError());
    return y;
}

static Image<float> raised(Network& net, Image<float> x, Image<float> beside) {
    const Image<float> y = net.image(x.batch, 2 * beside.channels, beside.height, beside.width);
    const scalar_t* weight = net.weight();
    raise_kernel<<<blocks_for(y.count()), THREADS>>>(y, x, beside.data, weight, net.weight());
    check(cudaGetLastError());
    return y;
}

void launch_gpu_implementation(void* output, void* x, void* const* weights, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t features, int64_t bottom_height, int64_t bottom_width) {
    Network net{weights};
    Image<float> y = net.image(batch_size, in_channels, bottom_height << LEVELS, bottom_width << LEVELS);
    widen_kernel<<<blocks_for(y.count()), THREADS>>>(y, in(x));
    check(cudaGetLastError());
    Image<float> beside[LEVELS + 1];
    for (int level = 0; level <= LEVELS; ++level) {
        y = beside[level] = activated(net, level > 0 ? pooled(net, y) : y, features << level);
    }
    for (int level = LEVELS - 1; level >= 0; --level) {
        y = activated(net, raised(net, y, beside[level]), features << level);
    }
    const scalar_t* last = net.weight();
    const Image<scalar_t> result{out(output), batch_size, out_channels, y.height, y.width};
    conv_kernel<<<blocks_for(result.count()), THREADS>>>(result, y, last, net.weight(), 1);
    check(cudaGetLastError());
}
