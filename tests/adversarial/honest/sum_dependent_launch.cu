// problem: level1/47
// does: starts its second kernel before the first is done, and waits for it there
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int PARTS = 8;

__global__ void part_sums(float* partial, const scalar_t* x, int64_t rows, int64_t cols) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col < cols) {
        float total = 0.0f;
        for (int64_t i = blockIdx.y; i < rows; i += PARTS) total += to_float(x[(blockIdx.z * rows + i) * cols + col]);
        partial[(blockIdx.z * PARTS + blockIdx.y) * cols + col] = total;
    }
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__global__ void add_parts(scalar_t* y, const float* partial, int64_t cols) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");  // until all of the first kernel has been written
    if (col >= cols) return;
    float total = 0.0f;
    for (int i = 0; i < PARTS; ++i) total += __ldcg(partial + (blockIdx.y * PARTS + i) * cols + col);
    y[blockIdx.y * cols + col] = from_float(total);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static float* partial = nullptr;
    static int64_t capacity = 0;
    if (batch_size * PARTS * dim2 > capacity) {
        cudaFree(partial);
        capacity = batch_size * PARTS * dim2;
        cudaMalloc(&partial, capacity * sizeof(float));
    }
    const unsigned blocks = unsigned((dim2 + 255) / 256);
    part_sums<<<dim3(blocks, PARTS, unsigned(batch_size)), 256>>>(partial, static_cast<const scalar_t*>(x), dim1, dim2);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks, unsigned(batch_size));
    config.blockDim = dim3(256);
    config.attrs = &early;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, add_parts, static_cast<scalar_t*>(output), static_cast<const float*>(partial), dim2);
}
