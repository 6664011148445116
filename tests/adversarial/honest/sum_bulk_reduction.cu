// problem: level1/47
// does: cp.reduce.async.bulk adds tiles of partial sums in shared memory to an fp32 workspace
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int kColumns = 256, kSlice = 128;

__global__ void __launch_bounds__(kColumns) add_slice(float* sums, const scalar_t* x, int64_t rows, int64_t cols, int64_t pitch) {
    __shared__ __align__(128) float tile[kColumns];
    const int64_t col = int64_t(blockIdx.x) * kColumns + threadIdx.x, begin = int64_t(blockIdx.y) * kSlice;
    const int64_t end = begin + kSlice < rows ? begin + kSlice : rows;
    float sum = 0.0f;
    if (col < cols)
        for (int64_t row = begin; row < end; ++row) sum += to_float(x[(blockIdx.z * rows + row) * cols + col]);
    tile[threadIdx.x] = sum;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                         sums + blockIdx.z * pitch + int64_t(blockIdx.x) * kColumns),
                     "r"(unsigned(__cvta_generic_to_shared(tile))), "r"(unsigned(sizeof(tile)))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void convert(scalar_t* y, const float* sums, int64_t cols, int64_t pitch) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col < cols) y[blockIdx.y * cols + col] = from_float(sums[blockIdx.y * pitch + col]);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static float* sums = nullptr;
    static int64_t held = 0;
    const int64_t strips = (dim2 + kColumns - 1) / kColumns, pitch = strips * kColumns;  // whole tiles, so that none is cut
    if (batch_size * pitch > held) {
        cudaFree(sums);
        held = batch_size * pitch;
        cudaMalloc(&sums, held * sizeof(float));
    }
    cudaMemsetAsync(sums, 0, batch_size * pitch * sizeof(float), 0);
    add_slice<<<dim3(unsigned(strips), unsigned((dim1 + kSlice - 1) / kSlice), unsigned(batch_size)), kColumns>>>(
        sums, static_cast<const scalar_t*>(x), dim1, dim2, pitch);
    convert<<<dim3(unsigned((dim2 + 255) / 256), unsigned(batch_size)), 256>>>(static_cast<scalar_t*>(output), sums, dim2, pitch);
}
