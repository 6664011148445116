// Softmax of rows: one warp per row, maximum and sum in one pass, pairs merged by shuffles.
#include "check.cuh"

__device__ void merge(float &maximum, float &sum, float other_maximum, float other_sum) {
    float larger = fmaxf(maximum, other_maximum);
    if (larger == -INFINITY) return;  // (-inf) - (-inf) is NaN
    sum = sum * __expf(maximum - larger) + other_sum * __expf(other_maximum - larger);
    maximum = larger;
}

__global__ void softmax(float *out, const float *in, int rows, int columns) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;  // whole warps only
    float maximum = -INFINITY, sum = 0.0f;
    for (int c = lane; c < columns; c += 32) merge(maximum, sum, in[row * columns + c], 1.0f);
    for (int step = 16; step; step /= 2) {
        float other_maximum = __shfl_xor_sync(~0u, maximum, step), other_sum = __shfl_xor_sync(~0u, sum, step);
        merge(maximum, sum, other_maximum, other_sum);
    }
    for (int c = lane; c < columns; c += 32) out[row * columns + c] = __expf(in[row * columns + c] - maximum) / sum;
}

int main() {
    const int rows = 37, columns = 130;
    std::vector<float> x = values(rows * columns, 1), expected(x.size());
    x[5] = -INFINITY;
    x[2 * columns] = 80.0f;
    for (int r = 0; r < rows; ++r) {
        double sum = 0, maximum = -INFINITY;
        for (int c = 0; c < columns; ++c) maximum = std::fmax(maximum, x[r * columns + c]);
        for (int c = 0; c < columns; ++c) sum += std::exp(x[r * columns + c] - maximum);
        for (int c = 0; c < columns; ++c) expected[r * columns + c] = std::exp(x[r * columns + c] - maximum) / sum;
    }
    float *in = on_device(x), *out = on_device(expected);
    CUDA_OK(cudaMemset(out, 0xff, expected.size() * sizeof(float)));
    softmax<<<(rows + 3) / 4, 128>>>(out, in, rows, columns);
    return compare(on_host(out, expected.size()), expected, 1e-5f);
}
