// problem: level1/42
// does: maxima along rows into a workspace from the stream's memory pool, then along columns
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void rows(scalar_t* t, const scalar_t* x, int64_t lines, int64_t width, int64_t ow, int size, int stride,
                     int padding, int dilation) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= lines * ow) return;
    float top = -INFINITY;
    for (int j = 0; j < size; ++j) {
        const int64_t c = i % ow * stride - padding + j * dilation;
        if (c >= 0 && c < width) top = fmaxf(top, to_float(x[i / ow * width + c]));
    }
    t[i] = from_float(top);
}

__global__ void columns(scalar_t* y, const scalar_t* t, int64_t planes, int64_t height, int64_t oh, int64_t ow, int size,
                        int stride, int padding, int dilation) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= planes * oh * ow) return;
    const int64_t plane = i / (oh * ow), row = i / ow % oh, col = i % ow;
    float top = -INFINITY;
    for (int j = 0; j < size; ++j) {
        const int64_t r = row * stride - padding + j * dilation;
        if (r >= 0 && r < height) top = fmaxf(top, to_float(t[(plane * height + r) * ow + col]));
    }
    y[i] = from_float(top);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const int64_t oh = (height + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    const int64_t ow = (width + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    const int64_t planes = batch_size * channels, between = planes * height * ow, n = planes * oh * ow;
    scalar_t* t = nullptr;
    cudaMallocAsync(reinterpret_cast<void**>(&t), between * sizeof(scalar_t), 0);
    rows<<<unsigned((between + 255) / 256), 256>>>(t, static_cast<const scalar_t*>(x), planes * height, width, ow,
                                                   int(kernel_size), int(stride), int(padding), int(dilation));
    columns<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), t, planes, height, oh, ow,
                                                int(kernel_size), int(stride), int(padding), int(dilation));
    cudaFreeAsync(t, 0);
}
