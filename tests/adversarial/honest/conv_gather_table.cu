// problem: level2/1
// does: a table of offsets, built on the host and cached per shape in a std::map, replaces index arithmetic
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <array>
#include <map>
#include <memory>
#include <vector>

struct Freed {
    void operator()(int* p) const noexcept { cudaFree(p); }
};

class OffsetTables {
  public:
    using Key = std::array<int64_t, 4>;  // in_channels, height, width, kernel_size

    const int* get(const Key& key) {
        auto& table = tables_[key];
        if (!table) {
            const auto [channels, height, width, taps] = key;
            std::vector<int> offsets;
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t i = 0; i < taps; ++i)
                    for (int64_t j = 0; j < taps; ++j) offsets.push_back(int((c * height + i) * width + j));
            int* device = nullptr;
            cudaMalloc(&device, offsets.size() * sizeof(int));
            cudaMemcpyAsync(device, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice, 0);
            cudaStreamSynchronize(0);
            table.reset(device);
        }
        return table.get();
    }

  private:
    std::map<Key, std::unique_ptr<int, Freed>> tables_;
};

constexpr int CHANNELS_PER_THREAD = 4;

__global__ void conv(scalar_t* y, const scalar_t* x, const scalar_t* extra, const scalar_t* w, const scalar_t* wb,
                     const int* offsets, int depth, int64_t in_plane, int out_channels, int64_t width, int64_t oh, int64_t ow) {
    const int64_t p = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (p >= oh * ow) return;
    const int groups = (out_channels + CHANNELS_PER_THREAD - 1) / CHANNELS_PER_THREAD;
    const int64_t sample = blockIdx.y / groups;
    const int first = int(blockIdx.y % groups) * CHANNELS_PER_THREAD;
    const scalar_t* corner = x + sample * in_plane + p / ow * width + p % ow;
    float sum[CHANNELS_PER_THREAD] = {};
    for (int k = 0; k < depth; ++k) {
        const float v = to_float(corner[offsets[k]]);
#pragma unroll
        for (int c = 0; c < CHANNELS_PER_THREAD; ++c)
            if (first + c < out_channels) sum[c] += v * to_float(w[int64_t(first + c) * depth + k]);
    }
#pragma unroll
    for (int c = 0; c < CHANNELS_PER_THREAD; ++c) {
        if (first + c >= out_channels) break;
        const float v = fmaxf(sum[c] + to_float(wb[first + c]), 0.0f) + to_float(extra[first + c]);
        y[(sample * out_channels + first + c) * oh * ow + p] = from_float(v);
    }
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels, int64_t height,
                               int64_t width, int64_t kernel_size) {
    static OffsetTables tables;
    const int* offsets = tables.get({in_channels, height, width, kernel_size});
    const int64_t oh = height - kernel_size + 1, ow = width - kernel_size + 1;
    const int64_t groups = (out_channels + CHANNELS_PER_THREAD - 1) / CHANNELS_PER_THREAD;
    conv<<<dim3(unsigned((oh * ow + 127) / 128), unsigned(groups * batch_size)), 128>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(bias),
        static_cast<const scalar_t*>(conv_weight), static_cast<const scalar_t*>(conv_bias), offsets,
        int(in_channels * kernel_size * kernel_size), in_channels * height * width, int(out_channels), width, oh, ow);
}
