// problem: level1/82
// precision: fp32
// kind: honest
// expects: depthwise convolution with the filters in constant memory, copied there (device to device) in every call, as many
//          channels at a time as fit; kernels for windows 1 to 7 from an index sequence, any other at run time
// size: small
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

namespace {

constexpr int THREADS_X = 32, THREADS_Y = 8, ROWS = 4, LARGEST = 7;
constexpr size_t CONSTANT_BYTES = 48 * 1024;

__constant__ alignas(16) unsigned char constant_filters[CONSTANT_BYTES];

void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

struct Shape {
    int64_t channels, height, width, window, out_height, out_width;
    int64_t first_channel, pass_channels;  // those whose filters this launch has
    int64_t tiles_x, tiles_y;
};

// Filters of one pass, from constant or from global memory.
struct FromConstant {
    __device__ float operator()(int64_t index) const {
        return to_float(reinterpret_cast<const scalar_t*>(constant_filters)[index]);
    }
};

struct FromGlobal {
    const scalar_t* weight;
    __device__ float operator()(int64_t index) const { return to_float(weight[index]); }
};

// One thread: ROWS outputs below each other. Window 0 stands for one that is known at run time only.
template <int Window, typename Filters>
__global__ void __launch_bounds__(THREADS_X* THREADS_Y)
    depthwise(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, Shape s, Filters filters) {
    const int64_t tile = blockIdx.x % (s.tiles_x * s.tiles_y), plane = blockIdx.x / (s.tiles_x * s.tiles_y);
    const int64_t local = plane % s.pass_channels, sample = plane / s.pass_channels;
    const int64_t column = tile % s.tiles_x * THREADS_X + threadIdx.x;
    const int64_t row0 = (tile / s.tiles_x * THREADS_Y + threadIdx.y) * ROWS;
    if (column >= s.out_width || row0 >= s.out_height) return;

    const int64_t channel = sample * s.channels + s.first_channel + local;
    const scalar_t* const image = x + channel * s.height * s.width + column;
    scalar_t* const result = output + channel * s.out_height * s.out_width + column;
    float sums[ROWS] = {};

    if constexpr (Window > 0) {
        // Each row of the input is read once and added to all outputs that it belongs to.
#pragma unroll
        for (int r = 0; r < ROWS + Window - 1; ++r) {
            if (row0 + r >= s.height) break;
            float values[Window];
#pragma unroll
            for (int kw = 0; kw < Window; ++kw) values[kw] = to_float(image[(row0 + r) * s.width + kw]);
#pragma unroll
            for (int o = 0; o < ROWS; ++o) {
                const int kh = r - o;
                if (kh < 0 || kh >= Window) continue;
#pragma unroll
                for (int kw = 0; kw < Window; ++kw) {
                    sums[o] = fmaf(values[kw], filters(local * Window * Window + kh * Window + kw), sums[o]);
                }
            }
        }
    } else {
        for (int o = 0; o < ROWS && row0 + o < s.out_height; ++o) {
            for (int64_t kh = 0; kh < s.window; ++kh) {
                for (int64_t kw = 0; kw < s.window; ++kw) {
                    sums[o] = fmaf(to_float(image[(row0 + o + kh) * s.width + kw]),
                                   filters((local * s.window + kh) * s.window + kw), sums[o]);
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
        if (row0 + o < s.out_height) result[(row0 + o) * s.out_width] = from_float(sums[o]);
    }
}

template <typename Filters>
using Kernel = void (*)(scalar_t*, const scalar_t*, Shape, Filters);

template <typename Filters, size_t... Windows>
constexpr auto kernels(std::index_sequence<Windows...>) {
    return std::array<Kernel<Filters>, sizeof...(Windows)>{depthwise<static_cast<int>(Windows), Filters>...};
}

template <typename Filters>
void launch(scalar_t* output, const scalar_t* x, int64_t batch, const Shape& s, Filters filters) {
    static const auto table = kernels<Filters>(std::make_index_sequence<LARGEST + 1>());
    const Kernel<Filters> kernel = table.at(s.window <= LARGEST ? s.window : 0);
    const auto blocks = static_cast<unsigned>(s.tiles_x * s.tiles_y * s.pass_channels * batch);
    kernel<<<blocks, dim3(THREADS_X, THREADS_Y)>>>(output, x, s, filters);
    require(cudaGetLastError());
}

// How many channels' filters fit into constant memory, if any do.
std::optional<int64_t> channels_per_pass(int64_t window) {
    const int64_t fit = static_cast<int64_t>(CONSTANT_BYTES / sizeof(scalar_t)) / (window * window);
    return fit > 0 ? std::optional(fit) : std::nullopt;
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t height, int64_t width, int64_t kernel_size) {
    auto* const out = static_cast<scalar_t*>(output);
    const auto* const in = static_cast<const scalar_t*>(x);
    const auto* const weight = static_cast<const scalar_t*>(conv2d_weight);
    const auto parts = [](int64_t extent, int64_t part) { return (extent + part - 1) / part; };

    Shape s{in_channels, height, width, kernel_size, height - kernel_size + 1, width - kernel_size + 1, 0, in_channels};
    s.tiles_x = parts(s.out_width, THREADS_X);
    s.tiles_y = parts(s.out_height, THREADS_Y * ROWS);

    const auto most = channels_per_pass(kernel_size);
    if (!most) {
        launch(out, in, batch_size, s, FromGlobal{weight});
        return;
    }
    // The default stream keeps copies and kernels in order: no copy overwrites filters that are still in use.
    const int64_t taps = kernel_size * kernel_size;
    for (; s.first_channel < in_channels; s.first_channel += *most) {
        s.pass_channels = std::min(*most, in_channels - s.first_channel);
        require(cudaMemcpyToSymbolAsync(constant_filters, weight + s.first_channel * taps,
                                        s.pass_channels * taps * sizeof(scalar_t), 0, cudaMemcpyDeviceToDevice));
        launch(out, in, batch_size, s, FromConstant{});
    }
}
