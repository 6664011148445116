// Resampling: one thread per pixel of the result.
#include <kernelblaster/kernels/image.cuh>

struct Resample {
    const float* x;
    int64_t height, width, new_height, new_width;
    __device__ static float place(int64_t i, int64_t old, int64_t now) {
        return (static_cast<float>(i) + 0.5f) * (static_cast<float>(old) / static_cast<float>(now)) - 0.5f;
    }
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, new_height, new_width);
        return Image{x + p.image * height * width, height, width}.sample(place(p.row, height, new_height),
                                                                         place(p.column, width, new_width));
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width, int64_t new_height,
                               int64_t new_width) {
    generate(out(output), images * new_height * new_width, Resample{in(x), height, width, new_height, new_width});
}
