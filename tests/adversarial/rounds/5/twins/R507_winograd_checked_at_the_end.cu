#include <kernelblaster/kernels/launch.cuh>

constexpr int OUTS = 4, INS = 16;

struct Image {
    int64_t batch, in, out, height, width;
};

// Any window: an output per thread.
__global__ void window_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, Image p, int64_t size) {
    const int64_t oh = p.height - size + 1, ow = p.width - size + 1, count = p.batch * p.out * oh * ow;
    for (int64_t i = first_index(); i < count; i += index_step()) {
        const int64_t column = i % ow, row = i / ow % oh, o = i / ow / oh % p.out, sample = i / ow / oh / p.out;
        float sum = 0.0f;
        for (int64_t c = 0; c < p.in; ++c)
            for (int64_t a = 0; a < size; ++a)
                for (int64_t b = 0; b < size; ++b)
                    sum += to_float(x[((sample * p.in + c) * p.height + row + a) * p.width + column + b]) *
                           to_float(weight[((o * p.in + c) * size + a) * size + b]);
        output[i] = from_float(sum);
    }
}


// Windows of 3 x 3: 2 x 2 outputs of four channels per thread.
__global__ void __launch_bounds__(128) tile_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, Image p) {
    __shared__ float w[INS][OUTS][9];
    const int64_t oh = p.height - 2, ow = p.width - 2, across = (ow + 1) / 2, tiles = (oh + 1) / 2 * across;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x, sample = blockIdx.z, o0 = static_cast<int64_t>(blockIdx.y) * OUTS;
    const int64_t row = tile / across * 2, column = tile % across * 2;
    float sums[OUTS][4] = {};
    for (int64_t c0 = 0; c0 < p.in; c0 += INS) {
        const int channels = static_cast<int>(p.in - c0 < INS ? p.in - c0 : INS);
        __syncthreads();
        for (int i = threadIdx.x; i < channels * OUTS; i += 128) {
            const int c = i / OUTS, o = i % OUTS;
            float from[9];
            for (int e = 0; e < 9; ++e) from[e] = o0 + o < p.out ? to_float(weight[((o0 + o) * p.in + c0 + c) * 9 + e]) : 0.0f;
            for (int e = 0; e < 9; ++e) w[c][o][e] = from[e];
        }
        __syncthreads();
        if (tile >= tiles) continue;
        for (int c = 0; c < channels; ++c) {
            const scalar_t* plane = x + (sample * p.in + c0 + c) * p.height * p.width;
            float d[4][4];
#pragma unroll
            for (int a = 0; a < 4; ++a)
#pragma unroll
                for (int b = 0; b < 4; ++b)
                    d[a][b] = row + a < p.height && column + b < p.width ? to_float(plane[(row + a) * p.width + column + b]) : 0.0f;
#pragma unroll
            for (int o = 0; o < OUTS; ++o)
#pragma unroll
                for (int e = 0; e < 4; ++e)
#pragma unroll
                    for (int f = 0; f < 9; ++f) sums[o][e] = fmaf(w[c][o][f], d[e / 2 + f / 3][e % 2 + f % 3], sums[o][e]);
        }
    }
    if (tile >= tiles) return;
#pragma unroll
    for (int o = 0; o < OUTS; ++o) {
        if (o0 + o >= p.out) break;
        float y[4];
        for (int e = 0; e < 4; ++e) y[e] = sums[o][e];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int64_t r = row + e / 2, s = column + e % 2;
            if (r < oh && s < ow) output[((sample * p.out + o0 + o) * oh + r) * ow + s] = from_float(y[e]);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t height, int64_t width, int64_t kernel_size) {
    const Image p{batch_size, in_channels, out_channels, height, width};
    if (kernel_size == 3 && batch_size < 65536 && out_channels <= 4 * 65535) {
        const int64_t tiles = (height - 1) / 2 * ((width - 1) / 2);
        const dim3 grid(static_cast<unsigned>((tiles + 127) / 128), static_cast<unsigned>((out_channels + OUTS - 1) / OUTS), static_cast<unsigned>(batch_size));
        tile_kernel<<<grid, 128>>>(out(output), in(x), in(conv2d_weight), p);
    } else {
        const int64_t count = batch_size * out_channels * (height - kernel_size + 1) * (width - kernel_size + 1);
        window_kernel<<<blocks_for(count), THREADS>>>(out(output), in(x), in(conv2d_weight), p, kernel_size);
    }
    check(cudaGetLastError());
}
