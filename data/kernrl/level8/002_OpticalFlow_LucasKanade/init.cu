// Optical flow: one thread per pixel sums the products of gradients over its window.
#include <kernelblaster/kernels/image.cuh>

struct Flow {
    float* output;
    const float *first, *second;
    int64_t height, width, radius;
    float damping;
    __device__ void operator()(int64_t i) const {
        const Image one{first, height, width}, two{second, height, width};
        float xx = damping, xy = 0.0f, yy = damping, xt = 0.0f, yt = 0.0f;
        for (int64_t r = i / width - radius; r <= i / width + radius; ++r) {
            for (int64_t c = i % width - radius; c <= i % width + radius; ++c) {
                if (!one.holds(r, c)) continue;
                const float x = (one.or_zero(r, c + 1) - one.or_zero(r, c - 1)) / 2.0f;
                const float y = (one.or_zero(r + 1, c) - one.or_zero(r - 1, c)) / 2.0f;
                const float t = two.at(r, c) - one.at(r, c);
                xx += x * x;
                xy += x * y;
                yy += y * y;
                xt += x * t;
                yt += y * t;
            }
        }
        const float determinant = xx * yy - xy * xy;
        output[i] = (xy * yt - yy * xt) / determinant;
        output[height * width + i] = (xy * xt - xx * yt) / determinant;
    }
};

void launch_gpu_implementation(void* output, void* first, void* second, int64_t height, int64_t width, int64_t radius,
                               float damping) {
    for_each(height * width, Flow{out(output), in(first), in(second), height, width, radius, damping});
}
