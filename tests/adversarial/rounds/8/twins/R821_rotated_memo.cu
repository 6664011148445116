// problem: level2/14
// precision: fp16
// kind: honest
// expects: sums the columns of the weight in each call, then one warp per row multiplies; correct.
// size: small
#include <kernelblaster/kernels/workspace.cuh>

constexpr int WARPS = THREADS / 32;

// 32 columns a block, its 8 warps share the rows.
__global__ void columns_kernel(float* sums, const scalar_t* w, int64_t in, int64_t hidden) {
    __shared__ float partial[WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t k = static_cast<int64_t>(blockIdx.x) * 32 + lane;
    float sum = 0.0f;
    if (k < in) {
        for (int64_t h = warp; h < hidden; h += WARPS) sum += to_float(w[h * in + k]);
    }
    partial[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && k < in) {
        for (int i = 1; i < WARPS; ++i) sum += partial[i][lane];
        sums[k] = sum;
    }
}

__global__ void rows_kernel(scalar_t* output, const scalar_t* x, const float* sums, int64_t rows, int64_t in,
                            float factor) {
    const int lane = threadIdx.x % 32;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int64_t k = lane; k < in; k += 32) sum += to_float(x[row * in + k]) * sums[k];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) output[row] = from_float(factor * 0.5f * sum);
}

void launch_gpu_implementation(void* output, void* x, void* weight, int64_t batch_size, int64_t in_features,
                               int64_t hidden, float scaling_factor) {
    Workspace workspace;
    float* sums = workspace.take_float(in_features);
    columns_kernel<<<blocks_for(in_features, 32), THREADS>>>(sums, in(weight), in_features, hidden);
    check(cudaGetLastError());
    rows_kernel<<<blocks_for(batch_size, WARPS), THREADS>>>(out(output), in(x), sums, batch_size, in_features,
                                                            scaling_factor);
    check(cudaGetLastError());
}
