// problem: level1/26
// does: asks once, under std::call_once, how many blocks fit the device, and strides over the grid
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <mutex>

__device__ __forceinline__ float gelu_exact(float x) { return 0.5f * x * erfcf(-0.7071067811865475f * x); }

__global__ void gelu_grid_stride(scalar_t* __restrict__ y, const scalar_t* __restrict__ x, int64_t n) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        y[i] = from_float(gelu_exact(to_float(x[i])));
    }
}

namespace {
std::once_flag asked;
int blocks_that_fit = 0;

void ask_device() {
    int device = 0, processors = 0, per_processor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, gelu_grid_stride, 256, 0);
    blocks_that_fit = std::max(1, processors * per_processor);
}
}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    std::call_once(asked, ask_device);
    const int64_t n = batch_size * dim;
    const int64_t blocks = std::min<int64_t>(blocks_that_fit, (n + 255) / 256);
    gelu_grid_stride<<<unsigned(blocks), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}
