// Colour conversion: one thread per element of the result.
#include <kernelblaster/kernels/elementwise.cuh>

struct Convert {
    const scalar_t *x, *matrix, *offset;
    __device__ float operator()(int64_t i) const {
        const int64_t pixel = i / 3, channel = i % 3;
        float sum = to_float(offset[channel]);
        for (int c = 0; c < 3; ++c) sum += to_float(matrix[3 * channel + c]) * to_float(x[3 * pixel + c]);
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* x, void* matrix, void* offset, int64_t pixels) {
    generate(out(output), 3 * pixels, Convert{in(x), in(matrix), in(offset)});
}
