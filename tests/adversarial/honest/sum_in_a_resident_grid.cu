// problem: level1/47
// does: launches as many blocks as the GPU holds at once, which take columns in turns
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS) sum(scalar_t* y, const scalar_t* x, int64_t rows, int64_t cols, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t at = int64_t(blockIdx.x) * THREADS + threadIdx.x; at < n; at += step) {
        const scalar_t* column = x + at / cols * rows * cols + at % cols;
        float total = 0.0f;
        for (int64_t i = 0; i < rows; ++i) total += to_float(__ldcs(column + i * cols));
        y[at] = from_float(total);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static int resident = 0;
    if (resident == 0) {
        int per_sm = 0, sms = 0;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, sum, THREADS, 0);
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
        resident = per_sm * sms;
    }
    sum<<<unsigned(resident), THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1, dim2,
                                         batch_size * dim2);
}
