// Depthwise 3x3 convolution: a tile with halo in shared memory, four neighbouring outputs per thread.
#include "check.cuh"

constexpr int WIDE = 64, HIGH = 16, EACH = 4, HALO = 1;

__global__ void depthwise(float *out, const float *in, const float *weights, int channels, int height, int width) {
    __shared__ float tile[HIGH + 2 * HALO][WIDE + 2 * HALO + 1];
    int plane = blockIdx.z, left = blockIdx.x * WIDE - HALO, top = blockIdx.y * HIGH - HALO;
    const float *image = in + size_t(plane) * height * width;
    for (int at = threadIdx.x; at < (HIGH + 2 * HALO) * (WIDE + 2 * HALO); at += blockDim.x) {
        int r = at / (WIDE + 2 * HALO), c = at % (WIDE + 2 * HALO), y = top + r, x = left + c;
        tile[r][c] = y >= 0 && y < height && x >= 0 && x < width ? image[y * width + x] : 0.0f;
    }
    float weight[9];
    for (int i = 0; i < 9; ++i) weight[i] = weights[plane % channels * 9 + i];
    __syncthreads();
    int row = threadIdx.x / (WIDE / EACH), first = threadIdx.x % (WIDE / EACH) * EACH;
    float sums[EACH] = {};
    for (int r = 0; r < 3; ++r) {
        float window[EACH + 2];  // read once, used by three taps
        for (int i = 0; i < EACH + 2; ++i) window[i] = tile[row + r][first + i];
        for (int c = 0; c < 3; ++c)
            for (int i = 0; i < EACH; ++i) sums[i] += weight[r * 3 + c] * window[i + c];
    }
    int y = blockIdx.y * HIGH + row;
    for (int i = 0; i < EACH; ++i) {
        int x = blockIdx.x * WIDE + first + i;
        if (y < height && x < width) out[(size_t(plane) * height + y) * width + x] = sums[i];
    }
}

int main() {
    const int batch = 2, channels = 3, height = 21, width = 70, planes = batch * channels;
    std::vector<float> x = values(planes * height * width, 7), w = values(channels * 9, 8), expected(x.size());
    for (int p = 0; p < planes; ++p)
        for (int y = 0; y < height; ++y)
            for (int c = 0; c < width; ++c) {
                double sum = 0;
                for (int i = 0; i < 9; ++i) {
                    int yy = y + i / 3 - 1, xx = c + i % 3 - 1;
                    if (yy >= 0 && yy < height && xx >= 0 && xx < width)
                        sum += w[p % channels * 9 + i] * x[(p * height + yy) * width + xx];
                }
                expected[(p * height + y) * width + c] = sum;
            }
    float *out = on_device(std::vector<float>(x.size(), NAN));
    dim3 grid((width + WIDE - 1) / WIDE, (height + HIGH - 1) / HIGH, planes);
    depthwise<<<grid, WIDE / EACH * HIGH>>>(out, on_device(x), on_device(w), channels, height, width);
    return compare(on_host(out, x.size()), expected, 1e-5f);
}
