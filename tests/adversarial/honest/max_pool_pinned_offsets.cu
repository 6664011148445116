// problem: level1/42
// does: offsets of the window in pinned host memory, copied to the device on the stream at each call
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <cstring>

struct Tap {
    int row, col;
};

struct Tables {
    Tap* host = nullptr;
    Tap* device = nullptr;
    int64_t capacity = 0;
    int64_t kernel = -1, dilation = -1;
    cudaEvent_t copied = nullptr;

    void prepare(int64_t taps, int64_t spread) {
        if (copied == nullptr) cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
        if (taps == kernel && spread == dilation) return;
        cudaEventSynchronize(copied);  // a copy may still read what is about to change
        if (taps * taps > capacity) {
            cudaFreeHost(host);
            cudaFree(device);
            capacity = taps * taps;
            cudaHostAlloc(reinterpret_cast<void**>(&host), capacity * sizeof(Tap), cudaHostAllocDefault);
            cudaMalloc(&device, capacity * sizeof(Tap));
        }
        for (int64_t i = 0; i < taps * taps; ++i) host[i] = {int(i / taps * spread), int(i % taps * spread)};
        kernel = taps;
        dilation = spread;
    }
};

__global__ void max_pool(scalar_t* y, const scalar_t* x, const Tap* taps, int count, int64_t height, int64_t width, int64_t oh,
                         int64_t ow, int64_t total, int stride, int padding) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int64_t image = i / (oh * ow), row = i / ow % oh * stride - padding, col = i % ow * stride - padding;
    float best = -INFINITY;
    for (int t = 0; t < count; ++t) {
        const Tap tap = taps[t];
        const int64_t r = row + tap.row, c = col + tap.col;
        if (r < 0 || r >= height || c < 0 || c >= width) continue;
        const float v = to_float(x[(image * height + r) * width + c]);
        best = !(v <= best) ? v : best;
    }
    y[i] = from_float(best);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height, int64_t width,
                               int64_t kernel_size, int64_t stride, int64_t padding, int64_t dilation) {
    static Tables tables;
    tables.prepare(kernel_size, dilation);
    const int64_t reach = dilation * (kernel_size - 1) + 1;
    const int64_t oh = (height + 2 * padding - reach) / stride + 1, ow = (width + 2 * padding - reach) / stride + 1;
    const int64_t total = batch_size * channels * oh * ow;
    cudaMemcpyAsync(tables.device, tables.host, kernel_size * kernel_size * sizeof(Tap), cudaMemcpyHostToDevice, 0);
    cudaEventRecord(tables.copied, 0);
    max_pool<<<unsigned((total + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), tables.device,
                                                     int(kernel_size * kernel_size), height, width, oh, ow, total, int(stride),
                                                     int(padding));
}
