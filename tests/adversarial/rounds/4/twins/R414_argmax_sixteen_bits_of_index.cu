#include <kernelblaster/kernels/launch.cuh>

constexpr int WARPS = 16;

__global__ void __launch_bounds__(WARPS * 32) argmax_kernel(int64_t* output, const scalar_t* x, int64_t batch, int64_t rows, int64_t columns) {
    __shared__ float values[WARPS][32];
    __shared__ int64_t places[WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
    for (int64_t b = blockIdx.y; b < batch; b += gridDim.y) {
        float best = -INFINITY;
        int64_t place = warp;
        if (column < columns) {
            const scalar_t* from = x + (b * rows + warp) * columns + column;
#pragma unroll 4
            for (int64_t i = warp; i < rows; i += WARPS, from += WARPS * columns) {
                const float value = to_float(*from);
                if (value > best) {
                    best = value;
                    place = i;
                }
            }
        }
        values[warp][lane] = best;
        places[warp][lane] = place;
        __syncthreads();
        if (warp == 0 && column < columns) {
            for (int other = 1; other < WARPS; ++other) {
                const float value = values[other][lane];
                const int64_t at = places[other][lane];
                if (value > best || (value == best && at < place)) {
                    best = value;
                    place = at;
                }
            }
            output[b * columns + column] = place;
        }
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    if (batch_size == 0 || dim2 == 0) return;
    const dim3 blocks((dim2 + 31) / 32, batch_size < 65535 ? batch_size : 65535);
    argmax_kernel<<<blocks, WARPS * 32>>>(static_cast<int64_t*>(output), in(x), batch_size, dim1, dim2);
    check(cudaGetLastError());
}
