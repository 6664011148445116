// Transposed convolution, kept in fp32; one block per channel normalises it in place, then one thread per window:
// means of 2 x 2 x 2 means are means of windows of 4.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Keep {
    float* kept;
    __device__ float operator()(float sum, int64_t index, int64_t) const {
        kept[index] = sum;
        return sum;
    }
};

__global__ void norm_channels_kernel(float* y, Channels shape, Affine affine, float eps) {
    for (int64_t channel = blockIdx.x; channel < shape.channels; channel += gridDim.x) {
        const auto place = [&](int64_t i) {
            return (i / shape.points * shape.channels + channel) * shape.points + i % shape.points;
        };
        const int64_t count = shape.batch * shape.points;
        const Moments m = block_moments(count, [&](int64_t i) { return y[place(i)]; });
        const float scale = rsqrtf(m.variance + eps);
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
            y[place(i)] = affine((y[place(i)] - m.mean) * scale, channel);
        }
    }
}

struct Mean {
    const float* y;
    Pool windows;
    __device__ float operator()(int64_t index) const {
        const int64_t points = windows.output.count(), plane = index / points;
        return window_mean(y + plane * windows.input.count(), windows, index % points);
    }
};

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t in_channels, int64_t depth,
                               int64_t height, int64_t width, int64_t out_channels, int64_t kernel_size,
                               int64_t stride, int64_t padding, float eps) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, 4, 4);
    const Channels channels{batch_size, out_channels, shape.output.count()};
    Workspace workspace;
    float* y = workspace.take_float(channels.count());
    conv_transpose(workspace.take(channels.count()), in(x), in(conv_transpose_weight), shape, Keep{y});
    const Affine affine{in(batch_norm_weight), in(batch_norm_bias)};
    norm_channels_kernel<<<blocks_for(out_channels, 1), 1024>>>(y, channels, affine, eps);
    check(cudaGetLastError());
    generate(out(output), windows.planes * windows.output.count(), Mean{y, windows});
}
