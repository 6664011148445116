// problem: level1/40
// does: CUB's block load, reduction with an operator of its own, and block store
// emulated: correct
// cuda: correct
// precision: bf16
// size: medium
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_store.cuh>
#include <kernelblaster/scalar.cuh>

constexpr int THREADS = 512, ITEMS = 8;

struct Moments {
    float count = 0.0f, mean = 0.0f, squares = 0.0f;
};

struct Merge {
    __device__ Moments operator()(const Moments& a, const Moments& b) const {
        Moments m;
        m.count = a.count + b.count;
        if (m.count == 0.0f) return m;
        const float delta = b.mean - a.mean, share = b.count / m.count;
        m.mean = a.mean + delta * share;
        m.squares = a.squares + b.squares + delta * delta * a.count * share;
        return m;
    }
};

using Load = cub::BlockLoad<scalar_t, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
using Store = cub::BlockStore<scalar_t, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
using Reduce = cub::BlockReduce<Moments, THREADS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;

__global__ __launch_bounds__(THREADS) void layer_norm(scalar_t* y, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                                                      int64_t count, float eps) {
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Reduce::TempStorage reduce;
    } shared;
    __shared__ float mean, scale;
    x += blockIdx.x * count;
    y += blockIdx.x * count;
    constexpr int TILE = THREADS * ITEMS;
    Moments mine;
    for (int64_t start = 0; start < count; start += TILE) {
        const int valid = int(min(int64_t(TILE), count - start));
        scalar_t items[ITEMS];
        Load(shared.load).Load(x + start, items, valid, from_float(0.0f));
        for (int i = 0; i < ITEMS; ++i) {
            if (int(threadIdx.x) * ITEMS + i >= valid) break;
            const float v = to_float(items[i]), delta = v - mine.mean;
            mine.count += 1.0f;
            mine.mean += delta / mine.count;
            mine.squares += delta * (v - mine.mean);
        }
        __syncthreads();
    }
    const Moments all = Reduce(shared.reduce).Reduce(mine, Merge{});
    if (threadIdx.x == 0) {
        mean = all.mean;
        scale = rsqrtf(all.squares / float(count) + eps);
    }
    __syncthreads();
    for (int64_t start = 0; start < count; start += TILE) {
        const int valid = int(min(int64_t(TILE), count - start));
        scalar_t items[ITEMS], w[ITEMS], b[ITEMS];
        Load(shared.load).Load(x + start, items, valid, from_float(0.0f));
        __syncthreads();
        Load(shared.load).Load(weight + start, w, valid, from_float(0.0f));
        __syncthreads();
        Load(shared.load).Load(bias + start, b, valid, from_float(0.0f));
        __syncthreads();
        for (int i = 0; i < ITEMS; ++i) items[i] = from_float((to_float(items[i]) - mean) * scale * to_float(w[i]) + to_float(b[i]));
        Store(shared.store).Store(y + start, items, valid);
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size, int64_t features,
                               int64_t dim1, int64_t dim2, float eps) {
    layer_norm<<<unsigned(batch_size), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x),
                                                  static_cast<const scalar_t*>(ln_weight), static_cast<const scalar_t*>(ln_bias),
                                                  features * dim1 * dim2, eps);
}
