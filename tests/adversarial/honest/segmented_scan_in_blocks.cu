// problem: data/kernrl/level9/008_SegmentedScan
// does: scans rows in blocks, with pairs of a flag and a sum, and carries the last on
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/kernels/launch.cuh>

constexpr int WIDTH = 256;

__global__ void scan(float* output, const float* values, const uint8_t* heads, int64_t rows, int64_t length) {
    __shared__ float sums[WIDTH];
    __shared__ int flags[WIDTH];
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float carried = 0.0f;
        for (int64_t begin = 0; begin < length; begin += WIDTH) {
            const int64_t i = begin + threadIdx.x, at = row * length + i;
            const float own = i < length ? values[at] : 0.0f;
            const bool head = i < length && (i == 0 || heads[at] != 0);
            sums[threadIdx.x] = own;
            flags[threadIdx.x] = head;
            for (int offset = 1; offset < WIDTH; offset *= 2) {
                __syncthreads();
                const bool has = threadIdx.x >= offset;
                const float before = has ? sums[threadIdx.x - offset] : 0.0f;
                const int flag = has ? flags[threadIdx.x - offset] : 0, mine = flags[threadIdx.x];
                __syncthreads();
                if (!mine) sums[threadIdx.x] += before;
                flags[threadIdx.x] = mine | flag;
            }
            __syncthreads();
            // Before this one in its segment: what the one before it has, with what was carried where no head came yet.
            float before = carried;
            if (threadIdx.x > 0) before = sums[threadIdx.x - 1] + (flags[threadIdx.x - 1] ? 0.0f : carried);
            if (i < length) output[at] = head ? 0.0f : before;
            carried = sums[WIDTH - 1] + (flags[WIDTH - 1] ? 0.0f : carried);
            __syncthreads();
        }
    }
}

void launch_gpu_implementation(void* output, void* values, void* heads, int64_t rows, int64_t length) {
    scan<<<blocks_for(rows, 1), WIDTH>>>(out(output), in(values), static_cast<const uint8_t*>(heads), rows, length);
    check(cudaGetLastError());
}
