// problem: level1/23
// does: fills a table of exponents for its kernel in a loop of OpenMP on the host, once
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>
#include <omp.h>

#include <cmath>
#include <vector>

constexpr int ENTRIES = 64;
__constant__ float powers[ENTRIES];  // of two, from 2^-63 on

// exp(x) for x <= 0: 2^k from the table, and a short series for the rest.
__device__ float exponential(float x) {
    const float scaled = fmaxf(x * 1.4426950408889634f, -62.0f), whole = floorf(scaled);
    return powers[int(whole) + ENTRIES - 1] * exp2f(scaled - whole);
}

__device__ float combined(float value, float* shared, bool maximum) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, value, offset);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (unsigned i = 1; i < blockDim.x / 32; ++i) value = maximum ? fmaxf(value, shared[i]) : value + shared[i];
    __syncthreads();
    return value;
}

__global__ void softmax(scalar_t* y, const scalar_t* x, int64_t dim) {
    __shared__ float shared[32];
    const scalar_t* row = x + blockIdx.x * dim;
    float greatest = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) greatest = fmaxf(greatest, to_float(row[i]));
    greatest = combined(greatest, shared, true);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += exponential(to_float(row[i]) - greatest);
    sum = combined(sum, shared, false);
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) {
        y[blockIdx.x * dim + i] = from_float(exponential(to_float(row[i]) - greatest) / sum);
    }
}

static bool fill_table() {
    std::vector<float> table(ENTRIES);
    omp_set_num_threads(omp_get_num_procs());
#pragma omp parallel for schedule(static)
    for (int i = 0; i < ENTRIES; ++i) table[size_t(i)] = std::ldexp(1.0f, i - (ENTRIES - 1));
    return omp_get_max_threads() > 0 && cudaMemcpyToSymbol(powers, table.data(), sizeof powers) == cudaSuccess;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static const bool filled = fill_table();
    if (!filled) return;
    softmax<<<unsigned(batch_size), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
