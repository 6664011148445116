// problem: level1/23
// does: maxima and sums of rows in a thrust::device_vector that is resized when the batch changes
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <thrust/device_vector.h>

struct Statistics {
    float maximum = 0.0f, sum = 0.0f;
};

__global__ void collect(Statistics* all, const scalar_t* x, int64_t dim) {
    __shared__ Statistics parts[16];
    Statistics mine{-INFINITY, 0.0f};
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
        const float v = to_float(x[blockIdx.x * dim + i]);
        if (v > mine.maximum) {
            mine.sum = mine.sum * expf(mine.maximum - v) + 1.0f;
            mine.maximum = v;
        } else if (v > -INFINITY) {  // what is masked has no weight
            mine.sum += expf(v - mine.maximum);
        }
    }
    for (int o = 16; o > 0; o /= 2) {
        const float m = __shfl_xor_sync(0xffffffffu, mine.maximum, o), s = __shfl_xor_sync(0xffffffffu, mine.sum, o);
        const float top = fmaxf(m, mine.maximum);
        if (top > -INFINITY) mine.sum = mine.sum * expf(mine.maximum - top) + s * expf(m - top);
        mine.maximum = top;
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < blockDim.x / 32; ++i) {
            const float top = fmaxf(parts[i].maximum, mine.maximum);
            if (top == -INFINITY) continue;
            mine.sum = mine.sum * expf(mine.maximum - top) + parts[i].sum * expf(parts[i].maximum - top);
            mine.maximum = top;
        }
        all[blockIdx.x] = mine;
    }
}

__global__ void normalise(scalar_t* y, const scalar_t* x, const Statistics* all, int64_t dim) {
    const int64_t row = blockIdx.y;
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= dim) return;
    const Statistics s = all[row];
    y[row * dim + i] = from_float(expf(to_float(x[row * dim + i]) - s.maximum) / s.sum);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    // Never destroyed: at exit the driver may be gone before static objects are.
    static auto& statistics = *new thrust::device_vector<Statistics>();
    if (int64_t(statistics.size()) < batch_size) statistics.resize(batch_size);
    Statistics* all = thrust::raw_pointer_cast(statistics.data());
    const auto* in = static_cast<const scalar_t*>(x);
    collect<<<unsigned(batch_size), 512>>>(all, in, dim);
    normalise<<<dim3(unsigned((dim + 255) / 256), unsigned(batch_size)), 256>>>(static_cast<scalar_t*>(output), in, all, dim);
}
