// The kernel to begin with: plain and right. One element per step of a thread.
//
// scalar_t is the type that tensors are stored in (half, bfloat16 or float, as the run's precision says); arithmetic is
// in float. Tensors are row-major, contiguous, and begin at multiples of 16 bytes. launch.cuh brings what is used below
// and is not defined here; a search sees one file, with these pieces in the place of the include.
#include <kernelblaster/kernels/launch.cuh>

__global__ void bias_leaky_relu_kernel(
    scalar_t* output, const scalar_t* x, const scalar_t* bias, int64_t count, int64_t columns, float negative_slope) {
    for (int64_t i = first_index(); i < count; i += index_step()) {
        const float value = to_float(x[i]) + to_float(bias[i % columns]);
        output[i] = from_float(value > 0.0f ? value : negative_slope * value);
    }
}

// As driver.cpp declares it. Launches on the default stream; no need to wait for the end.
void launch_gpu_implementation(void* output, void* x, void* bias, int64_t rows, int64_t columns, float negative_slope) {
    const int64_t count = rows * columns;
    bias_leaky_relu_kernel<<<blocks_for(count), THREADS>>>(out(output), in(x), in(bias), count, columns, negative_slope);
    check(cudaGetLastError());
}
