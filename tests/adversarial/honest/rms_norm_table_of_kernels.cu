// problem: level1/36
// does: a constexpr std::array of kernels instantiated from an index sequence, chosen by the number of channels
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/scalar.cuh>

#include <array>
#include <cstddef>
#include <utility>

using Kernel = void (*)(scalar_t*, const scalar_t*, int64_t, int64_t, int64_t, float);

// Unrolled by kUnroll channels; the rest one by one.
template <std::size_t kLog>
__global__ void rms_norm(scalar_t* y, const scalar_t* x, int64_t count, int64_t channels, int64_t pixels, float eps) {
    constexpr int64_t kUnroll = int64_t{1} << kLog;
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    x += i / pixels * channels * pixels + i % pixels;
    y += i / pixels * channels * pixels + i % pixels;
    float squares[kUnroll] = {};
    int64_t c = 0;
    for (; c + kUnroll <= channels; c += kUnroll) {
#pragma unroll
        for (int64_t u = 0; u < kUnroll; ++u) {
            const float v = to_float(__ldg(x + (c + u) * pixels));
            squares[u] = fmaf(v, v, squares[u]);
        }
    }
    for (; c < channels; ++c) squares[0] = fmaf(to_float(x[c * pixels]), to_float(x[c * pixels]), squares[0]);
#pragma unroll
    for (int64_t u = 1; u < kUnroll; ++u) squares[0] += squares[u];
    const float inverse = rsqrtf(squares[0] / float(channels) + eps);
    for (c = 0; c < channels; ++c) y[c * pixels] = from_float(to_float(x[c * pixels]) * inverse);
}

template <std::size_t... kLogs>
constexpr std::array<Kernel, sizeof...(kLogs)> make_table(std::index_sequence<kLogs...>) {
    return {&rms_norm<kLogs>...};
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1, int64_t dim2, float eps) {
    static constexpr auto table = make_table(std::make_index_sequence<5>{});
    std::size_t log = 0;
    while (log + 1 < table.size() && (int64_t{2} << log) <= features) ++log;
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    table[log]<<<unsigned((count + 127) / 128), 128>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count, features,
                                                       pixels, eps);
}
