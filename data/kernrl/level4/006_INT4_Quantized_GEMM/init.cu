// Product with 4-bit codes: they are decoded, then multiplied.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct Decode {
    const uint8_t* codes;
    const scalar_t* scales;
    int64_t group;
    __device__ float operator()(int64_t i) const {
        const int code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        return static_cast<float>(code - 8) * to_float(scales[i / group]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* codes, void* scales, int64_t rows, int64_t columns,
                               int64_t groups, int64_t group) {
    Workspace scratch;
    const int64_t inner = groups * group;
    scalar_t* weight = scratch.take(columns * inner);
    generate(weight, columns * inner, Decode{static_cast<const uint8_t*>(codes), in(scales), group});
    linear(out(output), in(x), weight, rows, inner, columns, Plain());
}
