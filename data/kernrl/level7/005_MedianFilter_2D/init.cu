// Median filter: one thread per pixel sorts its window by insertion.
#include <kernelblaster/kernels/image.cuh>

constexpr int RADIUS = 2, WINDOW = (2 * RADIUS + 1) * (2 * RADIUS + 1);

struct Median {
    const scalar_t* x;
    int64_t height, width;
    __device__ float operator()(int64_t i) const {
        const Pixel p(i, height, width);
        const Image image{x + p.image * height * width, height, width};
        float sorted[WINDOW];
        int held = 0;
        for (int r = -RADIUS; r <= RADIUS; ++r) {
            for (int c = -RADIUS; c <= RADIUS; ++c) {
                const float value = image.reflected(p.row + r, p.column + c);
                int place = held++;
                for (; place > 0 && sorted[place - 1] > value; --place) sorted[place] = sorted[place - 1];
                sorted[place] = value;
            }
        }
        return sorted[WINDOW / 2];
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t images, int64_t height, int64_t width) {
    generate(out(output), images * height * width, Median{in(x), height, width});
}
