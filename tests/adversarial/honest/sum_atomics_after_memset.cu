// problem: level1/47
// does: clears a workspace with cudaMemsetAsync and adds slices to it with red.global
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__device__ __forceinline__ void add_without_reading(float* at, float v) {
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(at), "f"(v) : "memory");
}

constexpr int kSlice = 128;

__global__ void add_slices(float* sums, const scalar_t* __restrict__ x, int64_t rows, int64_t cols) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    const int64_t begin = int64_t(blockIdx.y) * kSlice, end = min(begin + kSlice, rows);
    const scalar_t* p = x + (blockIdx.z * rows + begin) * cols + col;
    float s0 = 0.f, s1 = 0.f;
    int64_t i = begin;
    for (; i + 1 < end; i += 2, p += 2 * cols) {
        s0 += to_float(p[0]);
        s1 += to_float(p[cols]);
    }
    if (i < end) s0 += to_float(*p);
    add_without_reading(sums + blockIdx.z * cols + col, s0 + s1);
}

__global__ void convert(scalar_t* y, const float* sums, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = from_float(__ldcg(sums + i));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    static float* sums = nullptr;
    static size_t capacity = 0;
    const size_t count = size_t(batch_size * dim2);
    if (count > capacity) {
        cudaFree(sums);
        cudaMalloc((void**)&sums, count * sizeof(float));
        capacity = count;
    }
    cudaMemsetAsync(sums, 0, count * sizeof(float), 0);
    add_slices<<<dim3((unsigned)((dim2 + 255) / 256), (unsigned)((dim1 + kSlice - 1) / kSlice), (unsigned)batch_size), 256>>>(
        sums, (const scalar_t*)x, dim1, dim2);
    convert<<<(unsigned)((count + 255) / 256), 256>>>((scalar_t*)output, sums, (int64_t)count);
}
