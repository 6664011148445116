// Product of 8-bit matrices: both are decoded, which loses nothing, then multiplied.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// A number with 4 bits of exponent, 3 of mantissa, and no infinities.
struct Decode {
    const uint8_t* codes;
    __device__ float operator()(int64_t i) const {
        const int exponent = codes[i] >> 3 & 15, mantissa = codes[i] & 7;
        const float size = exponent == 0 ? ldexpf(static_cast<float>(mantissa), -9)
                                         : ldexpf(static_cast<float>(8 + mantissa), exponent - 10);
        return (codes[i] & 127) == 127 ? NAN : codes[i] & 128 ? -size : size;
    }
};

struct Scale {
    const float *a_scales, *b_scales;
    int64_t columns;
    __device__ float operator()(float sum, int64_t index, int64_t column) const {
        return sum * a_scales[index / columns] * b_scales[column];
    }
};

void launch_gpu_implementation(void* output, void* a, void* b, void* a_scales, void* b_scales, int64_t rows,
                               int64_t columns, int64_t inner) {
    Workspace scratch;
    scalar_t *wide_a = scratch.take(rows * inner), *wide_b = scratch.take(columns * inner);
    generate(wide_a, rows * inner, Decode{static_cast<const uint8_t*>(a)});
    generate(wide_b, columns * inner, Decode{static_cast<const uint8_t*>(b)});
    linear(out(output), wide_a, wide_b, rows, inner, columns,
           Scale{static_cast<const float*>(a_scales), static_cast<const float*>(b_scales), columns});
}
