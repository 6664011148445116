// problem: level1/26
// does: a table of std::function launchers with captures, the first that accepts the shape is used
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <functional>
#include <string>
#include <vector>

__device__ float gelu(float x) { return x * normcdff(x); }

__global__ void gelu_scalar(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(gelu(to_float(x[i])));
}

// Sixteen bytes per thread; `n` counts vectors.
__global__ void gelu_vector(uint4* y, const uint4* x, int64_t n) {
    constexpr int kLanes = sizeof(uint4) / sizeof(scalar_t);
    union Pack {
        uint4 raw;
        scalar_t item[kLanes];
        __device__ Pack() {}
    };
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pack p;
    p.raw = x[i];
    for (int k = 0; k < kLanes; ++k) p.item[k] = from_float(gelu(to_float(p.item[k])));
    y[i] = p.raw;
}

struct Variant {
    std::string name;
    std::function<bool(int64_t)> accepts;
    std::function<void(void*, const void*, int64_t)> launch;
};

static std::vector<Variant> make_variants() {
    constexpr int64_t lanes = sizeof(uint4) / sizeof(scalar_t);
    std::vector<Variant> all;
    for (const unsigned threads : {256u, 128u}) {
        all.push_back({"vector" + std::to_string(threads),
                       [threads](int64_t n) { return n % lanes == 0 && n / lanes >= int64_t(threads) * 1024; },
                       [threads](void* y, const void* x, int64_t n) {
                           const int64_t vectors = n / lanes;
                           gelu_vector<<<unsigned((vectors + threads - 1) / threads), threads>>>(
                               static_cast<uint4*>(y), static_cast<const uint4*>(x), vectors);
                       }});
    }
    all.push_back({"scalar", [](int64_t) { return true; },
                   [](void* y, const void* x, int64_t n) {
                       gelu_scalar<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(y),
                                                                       static_cast<const scalar_t*>(x), n);
                   }});
    return all;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static const std::vector<Variant> variants = make_variants();
    const int64_t n = batch_size * dim;
    for (const Variant& variant : variants) {
        if (variant.accepts(n)) return variant.launch(output, x, n);
    }
}
