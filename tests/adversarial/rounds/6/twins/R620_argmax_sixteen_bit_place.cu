#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

constexpr int COLUMNS = 32, GROUPS = 16;  // of a block: lanes are columns, warps share the rows
constexpr int AHEAD = 9;                  // loads in flight

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Best {
    float value = -INFINITY;
    int place = 0;
    __device__ __forceinline__ void take(float other, int at) {
        if (other > value) {
            value = other;
            place = at;
        }
    }
};

__global__ void __launch_bounds__(COLUMNS * GROUPS) argmax_kernel(
    int64_t* output, const scalar_t* x, int64_t batch, int64_t dim1, int64_t dim2) {
    __shared__ float values[GROUPS][COLUMNS];
    __shared__ int places[GROUPS][COLUMNS];
    const int lane = threadIdx.x, group = threadIdx.y;
    const int64_t across = (dim2 + COLUMNS - 1) / COLUMNS;
    for (int64_t tile = blockIdx.x; tile < across * batch; tile += gridDim.x) {
        const int64_t sample = tile / across, column = (tile - sample * across) * COLUMNS + lane;
        Best best;
        if (column < dim2) {
            const scalar_t* first = x + sample * dim1 * dim2 + column;
            for (int64_t i0 = group; i0 < dim1; i0 += GROUPS * AHEAD) {
                scalar_t bits[AHEAD];
                #pragma unroll
                for (int j = 0; j < AHEAD; ++j) {
                    const int64_t i = i0 + j * GROUPS;
                    if (i < dim1) bits[j] = first[i * dim2];
                }
                #pragma unroll
                for (int j = 0; j < AHEAD; ++j) {
                    const int64_t i = i0 + j * GROUPS;
                    if (i < dim1) best.take(to_float(bits[j]), static_cast<int>(i));
                }
            }
        }
        values[group][lane] = best.value;
        places[group][lane] = best.place;
        __syncthreads();
        if (group == 0 && column < dim2) {
            #pragma unroll
            for (int g = 1; g < GROUPS; ++g) best.take(values[g][lane], places[g][lane]);
            output[sample * dim2 + column] = best.place;
        }
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const int64_t tiles = (dim2 + COLUMNS - 1) / COLUMNS * batch_size;
    const unsigned blocks = static_cast<unsigned>(tiles < 1048576 ? tiles : 1048576);
    argmax_kernel<<<blocks, dim3(COLUMNS, GROUPS)>>>(
        static_cast<int64_t*>(output), static_cast<const scalar_t*>(x), batch_size, dim1, dim2);
    check(cudaGetLastError());
}
