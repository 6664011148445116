// problem: level1/36
// does: chooses between kernels with std::variant, std::visit and std::optional
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <optional>
#include <variant>

// Channels of one pixel stay in registers between the two passes.
template <int kMost>
__global__ void rms_registers(scalar_t* y, const scalar_t* x, int64_t count, int channels, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * channels * pixels + i % pixels;
    float held[kMost];
    float squares = 0.0f;
#pragma unroll
    for (int c = 0; c < kMost; ++c) {
        held[c] = c < channels ? to_float(x[base + c * pixels]) : 0.0f;
        squares = fmaf(held[c], held[c], squares);
    }
    const float rms = sqrtf(squares / float(channels) + eps);
#pragma unroll
    for (int c = 0; c < kMost; ++c) {
        if (c < channels) y[base + c * pixels] = from_float(held[c] / rms);
    }
}

__global__ void rms_two_passes(scalar_t* y, const scalar_t* x, int64_t count, int64_t channels, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * channels * pixels + i % pixels;
    float squares = 0.0f;
    for (int64_t c = 0; c < channels; ++c) {
        const float v = to_float(x[base + c * pixels]);
        squares = fmaf(v, v, squares);
    }
    const float rms = sqrtf(squares / float(channels) + eps);
    for (int64_t c = 0; c < channels; ++c) y[base + c * pixels] = from_float(to_float(x[base + c * pixels]) / rms);
}

struct Registers {
    int most;
};
struct TwoPasses {
    int block;
};
using Choice = std::variant<Registers, TwoPasses>;

static std::optional<int> register_bucket(int64_t channels) {
    for (const int most : {16, 64}) {
        if (channels <= most) return most;
    }
    return std::nullopt;
}

static Choice choose(int64_t channels) {
    if (const auto most = register_bucket(channels)) return Registers{*most};
    return TwoPasses{256};
}

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps) {
    auto* y = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    std::visit(overloaded{[&](Registers r) {
                              const unsigned blocks = unsigned((count + 127) / 128);
                              if (r.most == 16) {
                                  rms_registers<16><<<blocks, 128>>>(y, in, count, int(features), pixels, eps);
                              } else {
                                  rms_registers<64><<<blocks, 128>>>(y, in, count, int(features), pixels, eps);
                              }
                          },
                          [&](TwoPasses t) {
                              rms_two_passes<<<unsigned((count + t.block - 1) / t.block), unsigned(t.block)>>>(
                                  y, in, count, features, pixels, eps);
                          }},
               choose(features));
}
