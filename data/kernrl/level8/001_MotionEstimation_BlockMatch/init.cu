// Block matching: one thread block per block of the frame, one thread per displacement.
#include <kernelblaster/kernels/launch.cuh>

__device__ int64_t within(int64_t i, int64_t extent) { return i < 0 ? 0 : i < extent ? i : extent - 1; }

__global__ void match_kernel(int32_t* output, const uint8_t* frame, const uint8_t* other, int64_t block_rows,
                             int64_t block_columns, int64_t block, int64_t range) {
    __shared__ int32_t least;
    const int64_t height = block_rows * block, width = block_columns * block, reach = 2 * range + 1;
    for (int64_t tile = blockIdx.x; tile < block_rows * block_columns; tile += gridDim.x) {
        if (threadIdx.x == 0) least = 2147483647;
        __syncthreads();
        const int64_t top = tile / block_columns * block, left = tile % block_columns * block;
        for (int64_t i = threadIdx.x; i < reach * reach; i += blockDim.x) {
            const int64_t down = i / reach - range, over = i % reach - range;
            int32_t sum = 0;
            for (int64_t r = top; r < top + block; ++r) {
                const uint8_t* row = other + within(r + down, height) * width;
                for (int64_t c = left; c < left + block; ++c) sum += abs(frame[r * width + c] - row[within(c + over, width)]);
            }
            atomicMin(&least, sum);
        }
        __syncthreads();
        if (threadIdx.x == 0) output[tile] = least;
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* frame, void* other, int64_t block_rows, int64_t block_columns,
                               int64_t block, int64_t range) {
    match_kernel<<<blocks_for(block_rows * block_columns, 1), THREADS>>>(
        static_cast<int32_t*>(output), static_cast<const uint8_t*>(frame), static_cast<const uint8_t*>(other), block_rows,
        block_columns, block, range);
    check(cudaGetLastError());
}
