// h = tanh(W h + x) over all time steps in one cooperative launch: each block keeps its rows of W in shared memory for the
// whole sequence, and a counter in global memory is the barrier between steps.
#include "check.cuh"

#include <cooperative_groups.h>

// All blocks have arrived when the counter has grown by their number since the step before.
__device__ void grid_barrier(unsigned *counter, unsigned arrivals) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1u);
        while (atomicAdd(counter, 0u) < arrivals) {}
    }
    __syncthreads();
    __threadfence();
}

__global__ void recur(float *states, const float *w, const float *x, unsigned *counter, int steps, int batch, int size) {
    extern __shared__ float rows[];  // this block's rows of W
    int own = (size + gridDim.x - 1) / gridDim.x, first = blockIdx.x * own, count = min(own, size - first);
    for (int i = threadIdx.x; i < count * size; i += blockDim.x) rows[i] = w[first * size + i];
    __syncthreads();
    for (int t = 0; t < steps; ++t) {
        const float *before = states + size_t(t) * batch * size;
        float *after = states + size_t(t + 1) * batch * size;
        for (int i = threadIdx.x; i < count * batch; i += blockDim.x) {
            int b = i / count, r = i % count;
            float sum = x[(size_t(t) * batch + b) * size + first + r];
            for (int j = 0; j < size; ++j) sum += rows[r * size + j] * __ldcg(&before[b * size + j]);  // L1 is not coherent
            after[b * size + first + r] = tanhf(sum);
        }
        grid_barrier(counter, gridDim.x * (t + 1));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(&counter[1], 1u);
}

int main() {
    int steps = 7, batch = 3, size = 50, blocks = 4;
    std::vector<float> w = values(size * size, 13), x = values(steps * batch * size, 14), expected(size_t(steps + 1) * batch * size);
    for (float &value : w) value *= 0.3f;
    for (int t = 0; t < steps; ++t)
        for (int b = 0; b < batch; ++b)
            for (int r = 0; r < size; ++r) {
                double sum = x[(t * batch + b) * size + r];
                for (int j = 0; j < size; ++j) sum += double(w[r * size + j]) * expected[(size_t(t) * batch + b) * size + j];
                expected[(size_t(t + 1) * batch + b) * size + r] = std::tanh(sum);
            }
    std::vector<float> empty(expected.size(), NAN);
    std::fill(empty.begin(), empty.begin() + batch * size, 0.0f);
    float *states = on_device(empty), *dw = on_device(w), *dx = on_device(x);
    unsigned *counter = on_device(std::vector<unsigned>(2, 0u));
    void *arguments[] = {&states, &dw, &dx, &counter, &steps, &batch, &size};
    for (int call = 0; call < 2; ++call) {
        CUDA_OK(cudaMemsetAsync(counter, 0, 2 * sizeof(unsigned)));  // each call begins at zero
        size_t shared = size_t((size + blocks - 1) / blocks) * size * sizeof(float);
        CUDA_OK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(recur), dim3(blocks), dim3(64), arguments, shared, 0));
    }
    return compare(on_host(states, expected.size()), expected, 1e-4f);
}
