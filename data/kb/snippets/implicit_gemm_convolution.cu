// A convolution as a product on tensor cores: rows are output positions, columns output channels, and the sum runs over
// channels and filter taps. The operand of the image is gathered while it is loaded, with zeros outside of it.
#include "check.cuh"
#include "tile.cuh"

constexpr int TILE = 64, STEP = 32;

struct Shape {
    int images, channels, height, width, filters, taps, stride, padding, dilation;
    __host__ __device__ int out(int extent) const { return (extent + 2 * padding - dilation * (taps - 1) - 1) / stride + 1; }
};

__device__ half gathered(const half *x, const Shape &s, int position, int at) {
    int high = s.out(s.height), wide = s.out(s.width), image = position / (high * wide);
    int channel = at / (s.taps * s.taps), tap = at % (s.taps * s.taps);
    int row = position / wide % high * s.stride - s.padding + tap / s.taps * s.dilation;
    int column = position % wide * s.stride - s.padding + tap % s.taps * s.dilation;
    bool inside = image < s.images && channel < s.channels && row >= 0 && row < s.height && column >= 0 && column < s.width;
    return inside ? x[((size_t(image) * s.channels + channel) * s.height + row) * s.width + column] : half(0);
}

__global__ void __launch_bounds__(128) convolve(half *out, const half *x, const half *w, const float *bias, Shape s) {
    __shared__ __align__(16) half left[TILE * LD], right[TILE * LD];
    int lane = threadIdx.x % 32, y = threadIdx.x / 64 * 32, z = threadIdx.x / 32 % 2 * 32;
    int row = blockIdx.x * TILE, column = blockIdx.y * TILE, total = s.channels * s.taps * s.taps;
    float d[2][4][4] = {};
    for (int k = 0; k < total; k += STEP) {
        for (int i = threadIdx.x; i < TILE * STEP; i += blockDim.x) {
            int at = i / STEP * LD + i % STEP, filter = column + i / STEP, tap = k + i % STEP;
            left[at] = gathered(x, s, row + i / STEP, tap);
            right[at] = filter < s.filters && tap < total ? w[size_t(filter) * total + tap] : half(0);
        }
        __syncthreads();
        multiply_warp_tile(d, left + y * LD, right + z * LD, lane);
        __syncthreads();
    }
    int plane = s.out(s.height) * s.out(s.width);
    for_each(d, lane, [&](int i, int j, float value) {
        i += row + y, j += column + z;
        if (i < s.images * plane && j < s.filters)
            out[(size_t(i / plane) * s.filters + j) * plane + i % plane] = half(fmaxf(value + bias[j], 0.0f));
    });
}

int main() {
    const Shape s = {2, 5, 13, 11, 70, 3, 2, 1, 2};
    int high = s.out(s.height), wide = s.out(s.width), taps = s.taps * s.taps;
    std::vector<float> image = values(s.images * s.channels * s.height * s.width, 7), filter = values(s.filters * s.channels * taps, 8);
    std::vector<float> bias = values(s.filters, 9), expected(size_t(s.images) * s.filters * high * wide);
    std::vector<half> x(image.begin(), image.end()), w(filter.begin(), filter.end());
    for (size_t at = 0; at < expected.size(); ++at) {
        int column = at % wide, row = at / wide % high, f = at / (wide * high) % s.filters, n = at / (wide * high) / s.filters;
        double sum = bias[f];
        for (int c = 0; c < s.channels; ++c)
            for (int tap = 0; tap < taps; ++tap) {
                int y = row * s.stride - s.padding + tap / s.taps * s.dilation, z = column * s.stride - s.padding + tap % s.taps * s.dilation;
                if (y < 0 || y >= s.height || z < 0 || z >= s.width) continue;
                sum += float(x[((n * s.channels + c) * s.height + y) * s.width + z]) * float(w[(f * s.channels + c) * taps + tap]);
            }
        expected[at] = std::fmax(sum, 0.0);
    }
    half *out = on_device(std::vector<half>(expected.size(), half(NAN)));
    dim3 grid((s.images * high * wide + TILE - 1) / TILE, (s.filters + TILE - 1) / TILE);
    convolve<<<grid, 128>>>(out, on_device(x), on_device(w), on_device(bias), s);
    return compare(on_host(out, expected.size()), expected, 4e-3f);
}
