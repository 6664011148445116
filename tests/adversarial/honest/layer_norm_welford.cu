// problem: level1/40
// does: mean and variance in one pass by Welford's update, split over blocks
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int SPLIT = 32;

struct Moments {
    float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * (b.count / count), a.squares + b.squares + delta * delta * (a.count * b.count / count)};
}

__device__ Moments from_lane(Moments m, int o) {
    return {__shfl_xor_sync(~0u, m.count, o), __shfl_xor_sync(~0u, m.mean, o), __shfl_xor_sync(~0u, m.squares, o)};
}

__global__ void partial(Moments* parts, const scalar_t* x, int64_t n) {
    __shared__ Moments warps[8];
    const int64_t slice = (n + SPLIT - 1) / SPLIT, first = blockIdx.x * slice, last = min(first + slice, n);
    Moments mine{0.0f, 0.0f, 0.0f};
    for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
        const float value = to_float(x[blockIdx.y * n + i]), delta = value - mine.mean;
        mine.count += 1.0f;
        mine.mean += delta / mine.count;
        mine.squares += delta * (value - mine.mean);
    }
    for (int o = 16; o > 0; o /= 2) mine = merge(mine, from_lane(mine, o));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < 8; ++w) mine = merge(mine, warps[w]);
    parts[blockIdx.y * SPLIT + blockIdx.x] = mine;
}

__global__ void apply(scalar_t* y, const scalar_t* x, const Moments* parts, const scalar_t* weight, const scalar_t* bias,
                      int64_t n, float eps) {
    Moments all = parts[blockIdx.y * SPLIT];
    for (int i = 1; i < SPLIT; ++i) all = merge(all, parts[blockIdx.y * SPLIT + i]);
    const float scale = rsqrtf(all.squares / all.count + eps);
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
        const float centred = to_float(x[blockIdx.y * n + i]) - all.mean;
        y[blockIdx.y * n + i] = from_float(centred * scale * to_float(weight[i]) + to_float(bias[i]));
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    static Moments* parts = nullptr;
    static int64_t held = 0;
    if (held < batch_size) {
        cudaFree(parts);
        cudaMalloc(&parts, batch_size * SPLIT * sizeof(Moments));
        held = batch_size;
    }
    const int64_t n = features * dim1 * dim2;
    auto in = static_cast<const scalar_t*>(x);
    partial<<<dim3(SPLIT, unsigned(batch_size)), 256>>>(parts, in, n);
    apply<<<dim3(64, unsigned(batch_size)), 256>>>(static_cast<scalar_t*>(output), in, parts,
                                                   static_cast<const scalar_t*>(ln_weight),
                                                   static_cast<const scalar_t*>(ln_bias), n, eps);
}
