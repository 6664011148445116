#include <kernelblaster/kernels/launch.cuh>

struct Shape {
    int64_t planes, height, width, out_height, out_width, kernel;
};

__global__ void __launch_bounds__(128) pool_kernel(scalar_t* output, const scalar_t* x, Shape q) {
    const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x, row = static_cast<int64_t>(blockIdx.y) * 4 + threadIdx.y;
    if (column >= q.out_width || row >= q.out_height) return;
    const float area = static_cast<float>(q.kernel * q.kernel);
    for (int64_t plane = blockIdx.z; plane < q.planes; plane += gridDim.z) {
        const scalar_t* from = x + (plane * q.height + row * q.kernel) * q.width + column * q.kernel;
        float sum = 0.0f;
        for (int64_t h = 0; h < q.kernel; ++h, from += q.width) {
            float line = 0.0f;
#pragma unroll 1
            for (int64_t w = 0; w < q.kernel; ++w) line += to_float(from[w]);
            sum += line;
        }
        output[(plane * q.out_height + row) * q.out_width + column] = from_float(sum / area);
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size) {
    const Shape q{batch_size * channels, height, width, height / kernel_size, width / kernel_size, kernel_size};
    if (q.planes == 0 || q.out_height == 0 || q.out_width == 0) return;
    const dim3 blocks((q.out_width + 31) / 32, (q.out_height + 3) / 4, q.planes < 65535 ? q.planes : 65535);
    pool_kernel<<<blocks, dim3(32, 4)>>>(out(output), in(x), q);
    check(cudaGetLastError());
}
