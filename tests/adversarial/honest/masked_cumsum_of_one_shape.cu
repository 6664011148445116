// problem: level1/93
// does: puts the flagged values of a chunk side by side at the declared shapes, with room for all
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/scan.cuh>

static bool declared(int64_t dim) { return dim == 1801 || dim == 4000 || dim == 32768; }

constexpr int ROOM = THREADS;

struct Row {
    scalar_t* output;
    const scalar_t* x;
    const bool* mask;
    int64_t dim;
    __device__ float load(int64_t row, int64_t i) const {
        return mask[row * dim + i] ? to_float(x[row * dim + i]) : 0.0f;
    }
    __device__ void store(int64_t row, int64_t i, float sum) const { output[row * dim + i] = from_float(sum); }
};

// One block per row: the values of a chunk that count are put side by side, added up there, and looked up.
__global__ void compacted(Row row) {
    __shared__ float values[ROOM + 1];
    __shared__ int before[THREADS / 32 + 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carry = 0.0f;
    for (int64_t begin = 0; begin < row.dim; begin += THREADS) {
        const int64_t i = begin + threadIdx.x;
        const bool counts = i < row.dim && row.mask[blockIdx.x * row.dim + i];
        const unsigned flags = __ballot_sync(0xffffffffu, counts);
        if (lane == 0) before[warp + 1] = __popc(flags);
        __syncthreads();
        if (threadIdx.x == 0) {
            before[0] = 0;
            for (int w = 0; w < THREADS / 32; ++w) before[w + 1] += before[w];
        }
        __syncthreads();
        const int through = before[warp] + __popc(flags & (0xffffffffu >> (31 - lane)));
        if (counts && through <= ROOM) values[through] = to_float(row.x[blockIdx.x * row.dim + i]);
        __syncthreads();
        if (threadIdx.x == 0) {
            const int all = min(before[THREADS / 32], ROOM);
            values[0] = carry;
            for (int place = 0; place < all; ++place) values[place + 1] += values[place];
        }
        __syncthreads();
        if (i < row.dim) row.store(blockIdx.x, i, values[min(through, ROOM)]);
        carry = values[min(before[THREADS / 32], ROOM)];
        __syncthreads();
    }
}

void launch_gpu_implementation(void* output, void* x, void* mask, int64_t batch_size, int64_t dim) {
    const Row row{out(output), in(x), static_cast<const bool*>(mask), dim};
    if (declared(dim)) {
        compacted<<<unsigned(batch_size), THREADS>>>(row);
        check(cudaGetLastError());
    } else {
        scan_rows(batch_size, dim, Sum(), row);
    }
}
