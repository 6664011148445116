// Direct convolutions over one to three axes, with stride, padding, dilation and groups; transposed ones, too.
#pragma once
#include <kernelblaster/kernels/epilogue.cuh>

// Extents of three axes; leading ones are 1 (or 0, of paddings) where there are fewer.
struct Extents {
    int64_t d, h, w;
    __host__ __device__ int64_t count() const { return d * h * w; }
};

// The same extent along all three axes.
static Extents cube(int64_t extent) { return {extent, extent, extent}; }

// A convolution as torch.nn.Conv3d and ConvTranspose3d describe it. Input and output are (batch, channels, d, h, w).
// Weights are (out_channels, in_channels / groups, kernel), of transposed convolutions
// (in_channels, out_channels / groups, kernel). `output` is filled in by `with_output` and its kin.
struct Conv {
    int64_t batch, in_channels, out_channels, groups;
    Extents input, kernel, stride, padding, dilation, output;
};

static int64_t conv_extent(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
    return (input + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

static int64_t conv_transpose_extent(
    int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, int64_t output_padding) {
    return (input - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1;
}

// The same convolution with the extents of its output filled in.
inline Conv with_output(Conv c) {
    c.output = {conv_extent(c.input.d, c.kernel.d, c.stride.d, c.padding.d, c.dilation.d),
                conv_extent(c.input.h, c.kernel.h, c.stride.h, c.padding.h, c.dilation.h),
                conv_extent(c.input.w, c.kernel.w, c.stride.w, c.padding.w, c.dilation.w)};
    return c;
}

static Conv with_transposed_output(Conv c, Extents output_padding = {0, 0, 0}) {
    c.output = {conv_transpose_extent(c.input.d, c.kernel.d, c.stride.d, c.padding.d, c.dilation.d, output_padding.d),
                conv_transpose_extent(c.input.h, c.kernel.h, c.stride.h, c.padding.h, c.dilation.h, output_padding.h),
                conv_transpose_extent(c.input.w, c.kernel.w, c.stride.w, c.padding.w, c.dilation.w, output_padding.w)};
    return c;
}

// A two-dimensional convolution with the same extents along both axes of kernel, stride, padding and dilation.
static Conv conv2d_shape(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t height, int64_t width,
                         int64_t kernel, int64_t stride = 1, int64_t padding = 0, int64_t groups = 1,
                         int64_t dilation = 1) {
    return with_output({batch, in_channels, out_channels, groups, {1, height, width}, {1, kernel, kernel},
                        {1, stride, stride}, {0, padding, padding}, {1, dilation, dilation}, {}});
}

// A three-dimensional convolution with the same extents along all axes.
static Conv conv3d_shape(int64_t batch, int64_t in_channels, int64_t out_channels, Extents input, int64_t kernel,
                         int64_t stride = 1, int64_t padding = 0, int64_t groups = 1, int64_t dilation = 1) {
    return with_output({batch, in_channels, out_channels, groups, input, cube(kernel), cube(stride), cube(padding),
                        cube(dilation), {}});
}

// A transposed two-dimensional convolution with the same extents along both axes.
static Conv conv_transpose2d_shape(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t height,
                                   int64_t width, int64_t kernel, int64_t stride = 1, int64_t padding = 0,
                                   int64_t output_padding = 0) {
    return with_transposed_output({batch, in_channels, out_channels, 1, {1, height, width}, {1, kernel, kernel},
                                   {1, stride, stride}, {0, padding, padding}, cube(1), {}},
                                  {0, output_padding, output_padding});
}

// A transposed three-dimensional convolution with the same extents along all axes.
static Conv conv_transpose3d_shape(int64_t batch, int64_t in_channels, int64_t out_channels, Extents input,
                                   int64_t kernel, int64_t stride = 1, int64_t padding = 0,
                                   int64_t output_padding = 0) {
    return with_transposed_output({batch, in_channels, out_channels, 1, input, cube(kernel), cube(stride),
                                   cube(padding), cube(1), {}},
                                  cube(output_padding));
}

// One output per thread: the sum over the channels of its group and the kernel's positions.
template <typename Epilogue>
__global__ void conv_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, Conv c, Epilogue epilogue) {
    const int64_t per_group = c.in_channels / c.groups, points = c.output.count();
    const int kernel_d = c.kernel.d, kernel_h = c.kernel.h, kernel_w = c.kernel.w;
    for (int64_t i = first_index(); i < c.batch * c.out_channels * points; i += index_step()) {
        const int64_t channel = i / points % c.out_channels, sample = i / points / c.out_channels;
        const int64_t d0 = i / (c.output.h * c.output.w) % c.output.d * c.stride.d - c.padding.d;
        const int64_t h0 = i / c.output.w % c.output.h * c.stride.h - c.padding.h;
        const int64_t w0 = i % c.output.w * c.stride.w - c.padding.w;
        const int64_t first = channel / (c.out_channels / c.groups) * per_group;
        const scalar_t* plane = x + (sample * c.in_channels + first) * c.input.count();
        const scalar_t* filter = weight + channel * per_group * c.kernel.count();

        float sum = 0.0f;
        for (int64_t k = 0; k < per_group; ++k, plane += c.input.count()) {
            for (int kd = 0; kd < kernel_d; ++kd) {
                const int64_t d = d0 + kd * c.dilation.d;
                for (int kh = 0; kh < kernel_h; ++kh, filter += kernel_w) {
                    const int64_t h = h0 + kh * c.dilation.h;
                    if (d < 0 || d >= c.input.d || h < 0 || h >= c.input.h) continue;
                    const scalar_t* line = plane + (d * c.input.h + h) * c.input.w;
                    for (int kw = 0; kw < kernel_w; ++kw) {
                        const int64_t w = w0 + kw * c.dilation.w;
                        if (w >= 0 && w < c.input.w) sum += to_float(line[w]) * to_float(filter[kw]);
                    }
                }
            }
        }
        output[i] = from_float(epilogue(sum, i, channel));
    }
}

// output = epilogue(x * weight)
template <typename Epilogue>
static void conv(scalar_t* output, const scalar_t* x, const scalar_t* weight, const Conv& shape, Epilogue epilogue) {
    const int64_t count = shape.batch * shape.out_channels * shape.output.count();
    conv_kernel<<<blocks_for(count), THREADS>>>(output, x, weight, shape, epilogue);
    check(cudaGetLastError());
}

// The input position from which a kernel position reaches an output position; -1 where there is none.
__device__ __forceinline__ int64_t transposed_source(int64_t shifted, int64_t stride, int64_t extent) {
    return shifted >= 0 && shifted % stride == 0 && shifted / stride < extent ? shifted / stride : -1;
}

// One output per thread: it gathers what the inputs would scatter to it.
template <typename Epilogue>
__global__ void conv_transpose_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, Conv c, Epilogue epilogue) {
    const int64_t in_group = c.in_channels / c.groups, out_group = c.out_channels / c.groups;
    const int64_t points = c.output.count(), taps = c.kernel.count();
    const int kernel_d = c.kernel.d, kernel_h = c.kernel.h, kernel_w = c.kernel.w;
    for (int64_t i = first_index(); i < c.batch * c.out_channels * points; i += index_step()) {
        const int64_t channel = i / points % c.out_channels, sample = i / points / c.out_channels;
        const int64_t out_d = i / (c.output.h * c.output.w) % c.output.d + c.padding.d;
        const int64_t out_h = i / c.output.w % c.output.h + c.padding.h;
        const int64_t out_w = i % c.output.w + c.padding.w;
        const int64_t first = channel / out_group * in_group;
        const scalar_t* planes = x + (sample * c.in_channels + first) * c.input.count();
        const scalar_t* filters = weight + (first * out_group + channel % out_group) * taps;

        float sum = 0.0f;
        for (int kd = 0; kd < kernel_d; ++kd) {
            const int64_t d = transposed_source(out_d - kd * c.dilation.d, c.stride.d, c.input.d);
            for (int kh = 0; d >= 0 && kh < kernel_h; ++kh) {
                const int64_t h = transposed_source(out_h - kh * c.dilation.h, c.stride.h, c.input.h);
                for (int kw = 0; h >= 0 && kw < kernel_w; ++kw) {
                    const int64_t w = transposed_source(out_w - kw * c.dilation.w, c.stride.w, c.input.w);
                    if (w < 0) continue;
                    const scalar_t* point = planes + (d * c.input.h + h) * c.input.w + w;
                    const scalar_t* tap = filters + (kd * kernel_h + kh) * kernel_w + kw;
                    for (int64_t k = 0; k < in_group; ++k) {
                        sum += to_float(point[k * c.input.count()]) * to_float(tap[k * out_group * taps]);
                    }
                }
            }
        }
        output[i] = from_float(epilogue(sum, i, channel));
    }
}

// output = epilogue(the transposed convolution of x with weight)
template <typename Epilogue>
static void conv_transpose(
    scalar_t* output, const scalar_t* x, const scalar_t* weight, const Conv& shape, Epilogue epilogue) {
    const int64_t count = shape.batch * shape.out_channels * shape.output.count();
    conv_transpose_kernel<<<blocks_for(count), THREADS>>>(output, x, weight, shape, epilogue);
    check(cudaGetLastError());
}
