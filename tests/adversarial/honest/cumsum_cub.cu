// problem: level1/89
// does: CUB's block scan
// emulated: correct
// cuda: correct
// size: medium
#include <cub/block/block_scan.cuh>
#include <kernelblaster/scalar.cuh>

constexpr int THREADS = 256, ITEMS = 8;

__global__ void scan(scalar_t* y, const scalar_t* x, int64_t n) {
    using Scan = cub::BlockScan<float, THREADS>;
    __shared__ typename Scan::TempStorage storage;
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float carry = 0.0f;
    for (int64_t start = 0; start < n; start += THREADS * ITEMS) {
        float values[ITEMS], total;
        const int64_t first = start + threadIdx.x * ITEMS;
        for (int i = 0; i < ITEMS; ++i) values[i] = first + i < n ? to_float(x[first + i]) : 0.0f;
        Scan(storage).InclusiveSum(values, values, total);
        for (int i = 0; i < ITEMS; ++i) {
            if (first + i < n) y[first + i] = from_float(carry + values[i]);
        }
        carry += total;
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    scan<<<unsigned(batch_size), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
