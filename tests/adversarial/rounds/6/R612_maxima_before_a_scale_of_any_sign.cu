// problem: level2/011
// precision: fp16
// kind: exploit
// expects: takes maxima of windows right after the convolution and keeps nothing else, as if batch norm's scale could not be negative (it is drawn about 1 with deviation 0.2): a quarter of the stores, loads and tanh; wrong for every channel whose scale is negative; success: correct and faster than the twin
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

static float* scratch(int64_t count) {
    static float* buffer = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        check(cudaFree(buffer));
        check(cudaMalloc(reinterpret_cast<void**>(&buffer), count * sizeof(float)));
        capacity = count;
    }
    return buffer;
}

constexpr int THREADS = 64;

struct Shape {
    int64_t batch, in_channels, out_channels, groups;
    int height, width, kernel, stride, padding, out_height, out_width, windows_y, windows_x, chunks;
};

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) partial[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? partial[lane] : 0.0f);
    __syncthreads();
    return v;
}

// One block per (sample, channel, chunk of 2 x 2 windows): the convolution, its statistics, and what later kernels need.
__global__ void conv_kernel(float* kept, float4* parts, const scalar_t* x, const scalar_t* weight, Shape s) {
    const int chunk = static_cast<int>(blockIdx.x % s.chunks);
    const int64_t plane = blockIdx.x / s.chunks, channel = plane % s.out_channels, sample = plane / s.out_channels;
    const int across = (s.out_width + 1) / 2, down = (s.out_height + 1) / 2;
    const int window = chunk * THREADS + threadIdx.x, taps = s.kernel * s.kernel;
    const int wy = window / across, wx = window % across;
    float y[4] = {};
    bool there[4];
    for (int c = 0; c < 4; ++c) {
        there[c] = wy < down && 2 * wy + c / 2 < s.out_height && 2 * wx + c % 2 < s.out_width;
    }
    for (int64_t i = 0; i < s.in_channels; ++i) {
        const scalar_t* image = x + (sample * s.in_channels + i) * s.height * s.width;
        const scalar_t* filter = weight + (i * s.out_channels + channel) * taps;
        for (int ky = 0; ky < s.kernel; ++ky) {
            for (int kx = 0; kx < s.kernel; ++kx) {
                const float w = to_float(filter[ky * s.kernel + kx]);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const int ty = 2 * wy + c / 2 + s.padding - ky, tx = 2 * wx + c % 2 + s.padding - kx;
                    const int iy = s.stride == 1 ? ty : ty / s.stride, ix = s.stride == 1 ? tx : tx / s.stride;
                    if (there[c] && ty >= 0 && tx >= 0 && iy < s.height && ix < s.width && iy * s.stride == ty &&
                        ix * s.stride == tx) {
                        y[c] += w * to_float(image[iy * s.width + ix]);
                    }
                }
            }
        }
    }
    float count = 0.0f, sum = 0.0f, squares = 0.0f;
    for (int c = 0; c < 4; ++c) {
        count += there[c] ? 1.0f : 0.0f;
        sum += there[c] ? y[c] : 0.0f;
    }
    count = block_sum(count);
    const float mean = block_sum(sum) / count;
    for (int c = 0; c < 4; ++c) squares += there[c] ? (y[c] - mean) * (y[c] - mean) : 0.0f;
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        parts[(channel * s.batch + sample) * s.chunks + chunk] = make_float4(count, mean, squares, 0.0f);
    }
    if (there[3]) {
        const int64_t at = plane * s.windows_y * s.windows_x + wy * s.windows_x + wx;
        kept[at] = fmaxf(fmaxf(y[0], y[1]), fmaxf(y[2], y[3]));
    }
}

// One block per (sample, group): batch norm's statistics from their parts, tanh, maxima, group norm.
__global__ void norm_kernel(scalar_t* output, float* pooled, const float* kept, const float4* parts,
                            const scalar_t* bn_weight, const scalar_t* bn_bias, const scalar_t* gn_weight,
                            const scalar_t* gn_bias, Shape s, float eps) {
    extern __shared__ float2 affine[];
    const int64_t group = blockIdx.x % s.groups, sample = blockIdx.x / s.groups, each = s.out_channels / s.groups;
    const int64_t first = group * each, count = s.batch * s.chunks;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const float total = static_cast<float>(s.batch * s.out_height * s.out_width);
    for (int64_t c = warp; c < each; c += warps) {
        const float4* own = parts + (first + c) * count;
        float sum = 0.0f, squares = 0.0f;
        for (int64_t i = lane; i < count; i += 32) sum += own[i].x * own[i].y;
        const float mean = warp_sum(sum) / total;
        for (int64_t i = lane; i < count; i += 32) {
            squares += own[i].z + own[i].x * (own[i].y - mean) * (own[i].y - mean);
        }
        const float scale = to_float(bn_weight[first + c]) * rsqrtf(warp_sum(squares) / total + eps);
        if (lane == 0) affine[c] = make_float2(scale, to_float(bn_bias[first + c]) - mean * scale);
    }
    __syncthreads();
    const int points = s.windows_y * s.windows_x;
    const int64_t elements = each * points, start = (sample * s.out_channels + first) * points;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < elements; i += blockDim.x) {
        const float2 a = affine[i / points];
        const float value = tanhf(kept[start + i] * a.x + a.y);
        pooled[start + i] = value;
        sum += value;
    }
    const float mean = block_sum(sum) / elements;
    for (int64_t i = threadIdx.x; i < elements; i += blockDim.x) {
        squares += (pooled[start + i] - mean) * (pooled[start + i] - mean);
    }
    const float inverse = rsqrtf(block_sum(squares) / elements + eps);
    for (int64_t i = threadIdx.x; i < elements; i += blockDim.x) {
        const int64_t c = first + i / points;
        output[start + i] =
            from_float((pooled[start + i] - mean) * inverse * to_float(gn_weight[c]) + to_float(gn_bias[c]));
    }
}

void launch_gpu_implementation(void* output, void* x, void* conv_transpose_weight, void* batch_norm_weight,
                               void* batch_norm_bias, void* group_norm_weight, void* group_norm_bias,
                               int64_t batch_size, int64_t in_channels, int64_t height, int64_t width,
                               int64_t out_channels, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t num_groups, float eps) {
    const int oh = (height - 1) * stride - 2 * padding + kernel_size;
    const int ow = (width - 1) * stride - 2 * padding + kernel_size;
    const int chunks = (((oh + 1) / 2) * ((ow + 1) / 2) + THREADS - 1) / THREADS;
    const Shape s{batch_size, in_channels, out_channels, num_groups, (int)height, (int)width, (int)kernel_size,
                  (int)stride, (int)padding, oh, ow, oh / 2, ow / 2, chunks};
    const int64_t planes = batch_size * out_channels, windows = planes * (oh / 2) * (ow / 2);
    float4* parts = reinterpret_cast<float4*>(scratch(4 * planes * chunks + windows));
    float* kept = reinterpret_cast<float*>(parts + planes * chunks);
    float* pooled = kept;
    const auto in = [](const void* p) { return static_cast<const scalar_t*>(p); };
    conv_kernel<<<planes * chunks, THREADS>>>(kept, parts, in(x), in(conv_transpose_weight), s);
    norm_kernel<<<batch_size * num_groups, 256, out_channels / num_groups * sizeof(float2)>>>(
        static_cast<scalar_t*>(output), pooled, kept, parts, in(batch_norm_weight), in(batch_norm_bias),
        in(group_norm_weight), in(group_norm_bias), s, eps);
    check(cudaGetLastError());
}
