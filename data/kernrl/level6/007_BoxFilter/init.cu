// Box filter: one thread per pixel takes the whole window.
#include <kernelblaster/kernels/image.cuh>

struct Box {
    const scalar_t* x;
    int64_t height, width, radius;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        float sum = 0.0f;
        for (int64_t r = p.row - radius; r <= p.row + radius; ++r) {
            for (int64_t c = p.column - radius; c <= p.column + radius; ++c) sum += image.or_zero(r, c);
        }
        return sum / static_cast<float>((2 * radius + 1) * (2 * radius + 1));
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width, int64_t radius) {
    generate(out(output), images * height * width, Box{in(x), height, width, radius});
}
