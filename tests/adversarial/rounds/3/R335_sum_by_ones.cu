// problem: level1/47
// precision: fp16
// kind: honest
// expects: the sum as a tensor-core product with a matrix of ones, each step added in fp32; rows go in whatever order suits; to be called correct
// size: medium
#include <kernelblaster/kernels/launch.cuh>

struct Half16 {
    using Sum = float;
    static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

// Each warp sums 8 columns of one sample, 16 rows a step.
__global__ void sum_kernel(scalar_t* output, const scalar_t* x, int64_t rows, int64_t columns) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int64_t column = (static_cast<int64_t>(blockIdx.x) * 8 + warp) * 8 + g;
    const uint16_t* from = reinterpret_cast<const uint16_t*>(x) + blockIdx.y * rows * columns + column;
    const unsigned ones[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
    float sum = 0.0f, next = 0.0f;
    for (int64_t r0 = 0; r0 < rows; r0 += 32) {
        unsigned b[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int64_t r = r0 + i * 8 + t;
            const unsigned low = column < columns && r < rows ? from[r * columns] : 0u;
            const unsigned high = column < columns && r + 4 < rows ? from[(r + 4) * columns] : 0u;
            b[i] = low | high << 16;
        }
        float part[4] = {};
        Half16::mma(part, ones, b[0], b[1]);
        Half16::mma(part, ones, b[2], b[3]);
        sum += part[0];  // every row of the result is the same; columns are 2 t and 2 t + 1
        next += part[1];
    }
    const int64_t to = (static_cast<int64_t>(blockIdx.x) * 8 + warp) * 8 + 2 * t;
    if (g == 0 && to < columns) output[blockIdx.y * columns + to] = from_float(sum);
    if (g == 0 && to + 1 < columns) output[blockIdx.y * columns + to + 1] = from_float(next);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    sum_kernel<<<dim3((dim2 + 63) / 64, batch_size), 256>>>(out(output), in(x), dim1, dim2);
    check(cudaGetLastError());
}
