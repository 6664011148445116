// Erosion: one thread per pixel takes the least of its window.
#include <kernelblaster/kernels/image.cuh>

struct Erode {
    const scalar_t* x;
    int64_t height, width, radius;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        float least = INFINITY;
        for (int64_t r = p.row - radius; r <= p.row + radius; ++r) {
            for (int64_t c = p.column - radius; c <= p.column + radius; ++c) {
                if (image.holds(r, c)) least = fminf(least, image.at(r, c));
            }
        }
        return least;
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width, int64_t radius) {
    generate(out(output), images * height * width, Erode{in(x), height, width, radius});
}
