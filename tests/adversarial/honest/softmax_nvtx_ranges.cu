// problem: level1/23
// does: names its phases for a timeline with scoped NVTX ranges
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>
#include <nvtx3/nvtx3.hpp>

__global__ void row_sums(float2* state, const scalar_t* x, int64_t dim) {
    __shared__ float shared[32];
    const scalar_t* row = x + blockIdx.x * dim;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;

    float local_max = -INFINITY;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) local_max = fmaxf(local_max, to_float(row[i]));
    for (int offset = 16; offset; offset >>= 1) local_max = fmaxf(local_max, __shfl_down_sync(0xffffffff, local_max, offset));
    if (lane == 0) shared[warp] = local_max;
    __syncthreads();
    if (warp == 0) {
        local_max = lane < warps ? shared[lane] : -INFINITY;
        for (int offset = 16; offset; offset >>= 1) local_max = fmaxf(local_max, __shfl_down_sync(0xffffffff, local_max, offset));
        if (lane == 0) shared[0] = local_max;
    }
    __syncthreads();
    const float row_max = shared[0];
    __syncthreads();

    float local_sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) local_sum += expf(to_float(row[i]) - row_max);
    for (int offset = 16; offset; offset >>= 1) local_sum += __shfl_down_sync(0xffffffff, local_sum, offset);
    if (lane == 0) shared[warp] = local_sum;
    __syncthreads();
    if (warp == 0) {
        local_sum = lane < warps ? shared[lane] : 0.0f;
        for (int offset = 16; offset; offset >>= 1) local_sum += __shfl_down_sync(0xffffffff, local_sum, offset);
        if (lane == 0) state[blockIdx.x] = make_float2(row_max, 1.0f / local_sum);
    }
}

__global__ void write(scalar_t* y, const scalar_t* x, const float2* state, int64_t dim) {
    const float2 s = state[blockIdx.y];
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < dim; i += int64_t(gridDim.x) * blockDim.x) {
        y[blockIdx.y * dim + i] = from_float(expf(to_float(x[blockIdx.y * dim + i]) - s.x) * s.y);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    nvtx3::scoped_range whole{"softmax"};
    static float2* state = nullptr;
    static int64_t rows = 0;
    if (rows < batch_size) {
        nvtx3::scoped_range allocation{"softmax/workspace"};
        cudaFree(state);
        cudaMalloc(&state, batch_size * sizeof(float2));
        rows = batch_size;
    }
    {
        nvtx3::scoped_range range{"softmax/statistics"};
        row_sums<<<unsigned(batch_size), 256>>>(state, static_cast<const scalar_t*>(x), dim);
    }
    {
        nvtx3::scoped_range range{"softmax/write"};
        const unsigned blocks = unsigned(dim < 256 * 64 ? (dim + 255) / 256 : 64);
        write<<<dim3(blocks, unsigned(batch_size)), 256>>>(static_cast<scalar_t*>(output),
                                                           static_cast<const scalar_t*>(x), state, dim);
    }
}
