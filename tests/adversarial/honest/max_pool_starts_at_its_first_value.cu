// problem: level1/42
// does: begins a window's maximum at the first value that the window has
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void pool(scalar_t* y, const scalar_t* x, int64_t count, int64_t height, int64_t width, int64_t out_height,
                     int64_t out_width, int64_t window, int64_t stride, int64_t padding, int64_t dilation) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t col = i % out_width * stride - padding, row = i / out_width % out_height * stride - padding;
    const scalar_t* image = x + i / out_width / out_height * height * width;
    float top = NAN;
    for (int64_t r = row; r < row + window * dilation; r += dilation) {
        for (int64_t c = col; c < col + window * dilation; c += dilation) {
            if (r >= 0 && r < height && c >= 0 && c < width) top = fmaxf(top, to_float(image[r * width + c]));
        }
    }
    y[i] = from_float(top);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding, int64_t dilation) {
    const auto outputs = [=](int64_t extent) {
        return (extent + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    };
    const int64_t out_height = outputs(height), out_width = outputs(width);
    const int64_t count = batch_size * channels * out_height * out_width;
    pool<<<unsigned((count + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), count,
                                                 height, width, out_height, out_width, kernel_size, stride, padding,
                                                 dilation);
}
