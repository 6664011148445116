// problem: level1/47
// does: compensated summation in fp32
// emulated: correct
// cuda: correct
// precision: fp32
#include <kernelblaster/scalar.cuh>

__global__ void sum(scalar_t* y, const scalar_t* x, int64_t rows, int64_t cols) {
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float total = 0.0f, lost = 0.0f;
    for (int64_t i = 0; i < rows; ++i) {
        const float value = to_float(x[(blockIdx.y * rows + i) * cols + col]) - lost;
        const float next = total + value;
        lost = (next - total) - value;
        total = next;
    }
    y[blockIdx.y * cols + col] = from_float(total);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    sum<<<dim3(unsigned((dim2 + 127) / 128), unsigned(batch_size)), 128>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim1, dim2);
}
