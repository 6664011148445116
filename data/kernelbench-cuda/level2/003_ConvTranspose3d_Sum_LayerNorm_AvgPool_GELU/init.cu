// Transposed convolution plus sum_weight, kept in fp32; one block per line normalises it in place, then one thread per
// window: its mean and GELU.
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/elementwise.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/pool.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct AddKeep {
    const scalar_t* added;
    int64_t width;
    float* kept;
    __device__ float operator()(float sum, int64_t index, int64_t) const {
        kept[index] = sum + to_float(added[index % width]);
        return kept[index];
    }
};

__global__ void norm_lines_kernel(float* y, int64_t lines, int64_t width, Affine affine, float eps) {
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        float* first = y + line * width;
        const Moments m = block_moments(width, [&](int64_t i) { return first[i]; });
        const float scale = rsqrtf(m.variance + eps);
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) first[i] = affine((first[i] - m.mean) * scale, i);
    }
}

struct MeanGelu {
    const float* y;
    Pool windows;
    __device__ float operator()(int64_t index) const {
        const int64_t points = windows.output.count(), plane = index / points;
        return gelu(window_mean(y + plane * windows.input.count(), windows, index % points));
    }
};

void launch_gpu_implementation(void* output, void* x, void* sum_weight, void* conv_transpose_weight,
                               void* norm_weight, void* norm_bias, int64_t batch_size, int64_t in_channels,
                               int64_t depth, int64_t height, int64_t width, int64_t out_channels,
                               int64_t kernel_size, int64_t stride, int64_t padding, int64_t output_padding,
                               int64_t pool_size, float eps) {
    const Conv shape = conv_transpose3d_shape(batch_size, in_channels, out_channels, {depth, height, width},
                                              kernel_size, stride, padding, output_padding);
    const Pool windows = pool3d_shape(batch_size * out_channels, shape.output, pool_size, pool_size);
    const int64_t count = windows.planes * shape.output.count(), columns = shape.output.w;
    Workspace workspace;
    float* y = workspace.take_float(count);
    conv_transpose(workspace.take(count), in(x), in(conv_transpose_weight), shape,
                   AddKeep{in(sum_weight), columns, y});
    const int64_t lines = count / columns;
    const Affine affine{in(norm_weight), in(norm_bias)};
    norm_lines_kernel<<<blocks_for(lines, 1), THREADS>>>(y, lines, columns, affine, eps);
    check(cudaGetLastError());
    generate(out(output), windows.planes * windows.output.count(), MeanGelu{y, windows});
}
