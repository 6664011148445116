#include <kernelblaster/kernels/norm.cuh>

// Elements i and i + 1 of a group; what lies behind its end is 0.
__device__ __forceinline__ __half2 pair(const __half* x, int64_t i, int64_t count) {
    if (count % 2 == 0) return *reinterpret_cast<const __half2*>(x + i);
    return __halves2half2(x[i], i + 1 < count ? x[i + 1] : __float2half(0.0f));
}

// The same within a channel, whose beginning may be odd.
__device__ __forceinline__ __half2 line_pair(const __half* x, int64_t i, int64_t points) {
    if (points % 2 == 0) return *reinterpret_cast<const __half2*>(x + i);
    return __halves2half2(x[i], i + 1 < points ? x[i + 1] : __float2half(0.0f));
}

__device__ __forceinline__ void store_pair(__half* y, int64_t i, int64_t points, __half2 v) {
    if (points % 2 == 0) {
        *reinterpret_cast<__half2*>(y + i) = v;
        return;
    }
    y[i] = __low2half(v);
    if (i + 1 < points) y[i + 1] = __high2half(v);
}

// One block per sample and group: sums and squares in one pass (a second one where these cancel), then outputs.
__global__ void __launch_bounds__(256) norm_kernel(__half* output, const __half* x, const __half* weight,
                                                   const __half* bias, int64_t groups, int64_t per_group,
                                                   int64_t points, float eps) {
    const int64_t count = per_group * points, channel0 = blockIdx.x % groups * per_group;
    const __half* from = x + blockIdx.x * count;
    __half* to = output + blockIdx.x * count;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x * 2; i < count; i += blockDim.x * 2) {
        const float2 v = __half22float2(pair(from, i, count));
        sum += v.x + v.y;
        squares = fmaf(v.x, v.x, fmaf(v.y, v.y, squares));
    }
    float mean = block_reduce(sum, Sum()) / count;
    const float second = block_reduce(squares, Sum()) / count;
    float variance = second - mean * mean;
    if (!(variance > mean * mean / 64 && second < 1e30f)) {
        const Moments m = block_moments(count, [&](int64_t i) { return to_float(from[i]); });
        mean = m.mean, variance = m.variance;
    }
    const float scale = rsqrtf(variance + eps);
    for (int64_t c = 0; c < per_group; ++c) {
        const float a = scale * to_float(weight[channel0 + c]), b = to_float(bias[channel0 + c]);
        const __half* line = from + c * points;
        __half* out_line = to + c * points;
        for (int64_t i = threadIdx.x * 2; i < points; i += blockDim.x * 2) {
            const float2 v = __half22float2(line_pair(line, i, points));
            const __half2 y = __floats2half2_rn(fmaf(v.x - mean, a, b), fmaf(v.y - mean, a, b));
            store_pair(out_line, i, points, y);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* gn_weight, void* gn_bias, int64_t batch_size,
                               int64_t features, int64_t num_groups, int64_t dim1, int64_t dim2, float eps) {
    norm_kernel<<<static_cast<unsigned>(batch_size * num_groups), 256>>>(
        out(output), in(x), in(gn_weight), in(gn_bias), num_groups, features / num_groups, dim1 * dim2, eps);
    check(cudaGetLastError());
}
