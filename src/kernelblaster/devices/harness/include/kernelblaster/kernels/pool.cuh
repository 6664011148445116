// Pooling over one to three axes.
#pragma once
#include <kernelblaster/kernels/conv.cuh>
#include <kernelblaster/kernels/reduce.cuh>

// Windows over planes (batch times channels) of d x h x w elements.
struct Pool {
    int64_t planes;
    Extents input, kernel, stride, padding, dilation, output;
};

// The same pooling with the extents of its output filled in; windows that begin inside and end outside do not count
// (torch's ceil_mode=False).
inline Pool with_output(Pool p) {
    p.output = {conv_extent(p.input.d, p.kernel.d, p.stride.d, p.padding.d, p.dilation.d),
                conv_extent(p.input.h, p.kernel.h, p.stride.h, p.padding.h, p.dilation.h),
                conv_extent(p.input.w, p.kernel.w, p.stride.w, p.padding.w, p.dilation.w)};
    return p;
}

// A pooling of rows.
static Pool pool1d_shape(int64_t rows, int64_t width, int64_t kernel, int64_t stride, int64_t padding = 0) {
    return with_output(Pool{rows, {1, 1, width}, {1, 1, kernel}, {1, 1, stride}, {0, 0, padding}, cube(1), {}});
}

// A two-dimensional pooling with the same extents along both axes.
static Pool pool2d_shape(int64_t planes, int64_t height, int64_t width, int64_t kernel, int64_t stride,
                         int64_t padding = 0) {
    return with_output(Pool{planes, {1, height, width}, {1, kernel, kernel}, {1, stride, stride},
                            {0, padding, padding}, {1, 1, 1}, {}});
}

// A three-dimensional pooling with the same extents along all axes.
static Pool pool3d_shape(int64_t planes, Extents input, int64_t kernel, int64_t stride, int64_t padding = 0) {
    return with_output(Pool{planes, input, cube(kernel), cube(stride), cube(padding), cube(1), {}});
}

struct MaxPool {
    static constexpr float START = -INFINITY;
    __device__ float add(float held, float value) const { return fmaxf(held, value); }
    __device__ float finish(float held, const Pool&) const { return held; }
};

// The mean with padding counted as zeros (torch's count_include_pad=True).
struct AveragePool {
    static constexpr float START = 0.0f;
    __device__ float add(float held, float value) const { return held + value; }
    __device__ float finish(float held, const Pool& shape) const { return held / shape.kernel.count(); }
};

// One output per thread; positions in the padding are left out.
template <typename Kind>
__global__ void pool_kernel(scalar_t* output, const scalar_t* x, Pool p, Kind kind) {
    const int64_t points = p.output.count();
    const int kernel_d = p.kernel.d, kernel_h = p.kernel.h, kernel_w = p.kernel.w;
    for (int64_t i = first_index(); i < p.planes * points; i += index_step()) {
        const int64_t d0 = i / (p.output.h * p.output.w) % p.output.d * p.stride.d - p.padding.d;
        const int64_t h0 = i / p.output.w % p.output.h * p.stride.h - p.padding.h;
        const int64_t w0 = i % p.output.w * p.stride.w - p.padding.w;
        const scalar_t* plane = x + i / points * p.input.count();
        float held = Kind::START;
        for (int kd = 0; kd < kernel_d; ++kd) {
            const int64_t d = d0 + kd * p.dilation.d;
            for (int kh = 0; kh < kernel_h; ++kh) {
                const int64_t h = h0 + kh * p.dilation.h;
                if (d < 0 || d >= p.input.d || h < 0 || h >= p.input.h) continue;
                for (int kw = 0; kw < kernel_w; ++kw) {
                    const int64_t w = w0 + kw * p.dilation.w;
                    if (w >= 0 && w < p.input.w) {
                        held = kind.add(held, to_float(plane[(d * p.input.h + h) * p.input.w + w]));
                    }
                }
            }
        }
        output[i] = from_float(kind.finish(held, p));
    }
}

// output = the maximum (MaxPool()) or mean (AveragePool()) of each window of x
template <typename Kind>
static void pool(scalar_t* output, const scalar_t* x, const Pool& shape, Kind kind) {
    pool_kernel<<<blocks_for(shape.planes * shape.output.count()), THREADS>>>(output, x, shape, kind);
    check(cudaGetLastError());
}

// The mean of one window of a plane that is held in fp32; windows without padding.
__device__ __forceinline__ float window_mean(const float* plane, const Pool& p, int64_t window) {
    const int64_t d0 = window / (p.output.h * p.output.w) * p.stride.d;
    const int64_t h0 = window / p.output.w % p.output.h * p.stride.h, w0 = window % p.output.w * p.stride.w;
    float sum = 0.0f;
    for (int64_t d = d0; d < d0 + p.kernel.d; ++d) {
        for (int64_t h = h0; h < h0 + p.kernel.h; ++h) {
            const float* line = plane + (d * p.input.h + h) * p.input.w;
            for (int64_t w = w0; w < w0 + p.kernel.w; ++w) sum += line[w];
        }
    }
    return sum / p.kernel.count();
}

__global__ void average_planes_kernel(scalar_t* output, const scalar_t* x, int64_t planes, int64_t points) {
    for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < points; i += blockDim.x) sum += to_float(x[plane * points + i]);
        sum = block_reduce(sum, Sum());
        if (threadIdx.x == 0) output[plane] = from_float(sum / points);
    }
}

// output[plane] = the mean of each plane of x: global average pooling, one block per plane.
static void average_planes(scalar_t* output, const scalar_t* x, int64_t planes, int64_t points) {
    average_planes_kernel<<<blocks_for(planes, 1), THREADS>>>(output, x, planes, points);
    check(cudaGetLastError());
}
