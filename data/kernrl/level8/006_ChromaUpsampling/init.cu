// Chroma upsampling and conversion of colours: one thread per pixel.
#include <kernelblaster/kernels/image.cuh>

struct Colour {
    scalar_t* output;
    const scalar_t* y;
    Image u, v;
    __device__ void operator()(int64_t i) const {
        const int64_t width = 2 * u.width, pixels = 4 * u.height * u.width;
        const float row = 0.5f * static_cast<float>(i / width) - 0.25f;
        const float column = 0.5f * static_cast<float>(i % width) - 0.25f;
        const float light = to_float(y[i]), blue = u.sample(row, column), red = v.sample(row, column);
        output[i] = from_float(light + 1.402f * red);
        output[pixels + i] = from_float(light - 0.344136f * blue - 0.714136f * red);
        output[2 * pixels + i] = from_float(light + 1.772f * blue);
    }
};

void launch_gpu_implementation(void* output, void* y, void* u, void* v, int64_t chroma_height, int64_t chroma_width) {
    for_each(4 * chroma_height * chroma_width, Colour{out(output), in(y), Image{in(u), chroma_height, chroma_width},
                                                      Image{in(v), chroma_height, chroma_width}});
}
