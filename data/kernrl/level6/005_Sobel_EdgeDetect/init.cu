// Sobel's gradients: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Gradient {
    scalar_t *magnitude, *across, *down;
    const scalar_t* x;
    int64_t height, width;
    __device__ void operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        float to_right = 0.0f, to_bottom = 0.0f;
        for (int along = -1; along <= 1; ++along) {
            const float weight = along == 0 ? 2.0f : 1.0f;
            to_right += weight * (image.or_zero(p.row + along, p.column + 1) - image.or_zero(p.row + along, p.column - 1));
            to_bottom += weight * (image.or_zero(p.row + 1, p.column + along) - image.or_zero(p.row - 1, p.column + along));
        }
        magnitude[i] = from_float(sqrtf(to_right * to_right + to_bottom * to_bottom));
        across[i] = from_float(to_right);
        down[i] = from_float(to_bottom);
    }
};

void launch_gpu_implementation(void* magnitude, void* across, void* down, void* x, int64_t images, int64_t height,
                               int64_t width) {
    for_each(images * height * width, Gradient{out(magnitude), out(across), out(down), in(x), height, width});
}
