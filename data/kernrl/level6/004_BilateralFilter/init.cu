// Bilateral filter: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Smooth {
    const scalar_t* x;
    int64_t height, width, radius;
    float space, value;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        const float here = image.at(p.row, p.column);
        float total = 0.0f, weights = 0.0f;
        for (int64_t r = -radius; r <= radius; ++r) {
            for (int64_t c = -radius; c <= radius; ++c) {
                const float neighbour = image.reflected(p.row + r, p.column + c), apart = neighbour - here;
                const float weight = expf(space * static_cast<float>(r * r + c * c) + value * apart * apart);
                total += weight * neighbour;
                weights += weight;
            }
        }
        return total / weights;
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width, int64_t radius,
                               float sigma_space, float sigma_value) {
    const float space = -0.5f / (sigma_space * sigma_space), value = -0.5f / (sigma_value * sigma_value);
    generate(out(output), images * height * width, Smooth{in(x), height, width, radius, space, value});
}
