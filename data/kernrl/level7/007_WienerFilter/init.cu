// Wiener filter: transforms of image and window, a quotient per frequency, the transform back.
#include <kernelblaster/kernels/fft.cuh>

struct Load {
    float2* to;
    const float* x;
    __device__ void operator()(int64_t i) const { to[i] = make_float2(x[i], 0.0f); }
};

// The window with its middle at the origin, on a torus.
struct LoadWindow {
    float2* to;
    const float* window;
    int64_t height, width, extent;
    __device__ void operator()(int64_t i) const {
        const int64_t row = (i / width + extent / 2) % height, column = (i % width + extent / 2) % width;
        const bool inside = row < extent && column < extent;
        to[i] = make_float2(inside ? window[row * extent + column] : 0.0f, 0.0f);
    }
};

struct Divide {
    float2* image;
    const float2* blur;
    float noise;
    __device__ void operator()(int64_t i) const {
        const float2 h = blur[i], product = times(image[i], make_float2(h.x, -h.y));
        const float power = h.x * h.x + h.y * h.y + noise;
        image[i] = make_float2(product.x / power, product.y / power);
    }
};

struct Store {
    float* output;
    const float2* from;
    float scale;
    __device__ void operator()(int64_t i) const { output[i] = scale * from[i].x; }
};

// Both directions, between two buffers, of which the first holds the image, and the result is returned.
static float2* transform_image(float2* data, float2* other, int64_t height, int64_t width, float sign) {
    float2* rows = transform(data, other, Lines{height, width, 1}, sign);
    return transform(rows, rows == data ? other : data, Lines{width, height, width}, sign);
}

void launch_gpu_implementation(void* output, void* x, void* window, int64_t height, int64_t width, int64_t extent,
                               float noise) {
    Workspace scratch;
    const int64_t count = height * width;
    float2 *image = take_complex(scratch, count), *image_spare = take_complex(scratch, count);
    float2 *blur = take_complex(scratch, count), *blur_spare = take_complex(scratch, count);
    for_each(count, Load{image, in(x)});
    for_each(count, LoadWindow{blur, in(window), height, width, extent});
    const float2* divisor = transform_image(blur, blur_spare, height, width, -1.0f);
    float2* frequencies = transform_image(image, image_spare, height, width, -1.0f);
    for_each(count, Divide{frequencies, divisor, noise});
    const float2* result =
        transform_image(frequencies, frequencies == image ? image_spare : image, height, width, 1.0f);
    for_each(count, Store{out(output), result, 1.0f / static_cast<float>(count)});
}
