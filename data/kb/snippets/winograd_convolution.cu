// A 3x3 convolution by F(2x2, 3x3): 16 products instead of 36 for each 2x2 outputs, channel and filter. One thread per
// output tile and filter; a block's threads share the transformed tiles of the image.
#include "check.cuh"

constexpr int TILES = 32, FILTERS = 4;

// B^T d B of a 4x4 tile, in place: rows, then columns.
__device__ void transform_input(float (&d)[4][4]) {
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < 4; ++i) {
            float x0 = pass ? d[i][0] : d[0][i], x1 = pass ? d[i][1] : d[1][i], x2 = pass ? d[i][2] : d[2][i], x3 = pass ? d[i][3] : d[3][i];
            float y[4] = {x0 - x2, x1 + x2, x2 - x1, x1 - x3};
            for (int j = 0; j < 4; ++j) (pass ? d[i][j] : d[j][i]) = y[j];
        }
}

// U = G g G^T of every filter and channel, once per call.
__global__ void transform_filters(float *u, const float *g, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    float half_way[4][3];
    for (int j = 0; j < 3; ++j) {
        float a = g[at * 9 + j], b = g[at * 9 + 3 + j], c = g[at * 9 + 6 + j];
        half_way[0][j] = a, half_way[1][j] = 0.5f * (a + b + c), half_way[2][j] = 0.5f * (a - b + c), half_way[3][j] = c;
    }
    for (int i = 0; i < 4; ++i) {
        float a = half_way[i][0], b = half_way[i][1], c = half_way[i][2];
        float y[4] = {a, 0.5f * (a + b + c), 0.5f * (a - b + c), c};
        for (int j = 0; j < 4; ++j) u[at * 16 + i * 4 + j] = y[j];
    }
}

__global__ void __launch_bounds__(TILES * FILTERS) convolve(
    float *out, const float *x, const float *u, int images, int channels, int height, int width, int filters) {
    __shared__ float v[16][TILES];
    int down = (height + 1) / 2, across = (width + 1) / 2, tile = blockIdx.x * TILES + threadIdx.x % TILES;
    int filter = blockIdx.y * FILTERS + threadIdx.x / TILES, image = tile / (down * across);
    int row = tile / across % down * 2, column = tile % across * 2;
    float m[16] = {};
    for (int c = 0; c < channels; ++c) {
        if (threadIdx.x < TILES) {
            float d[4][4];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) {
                    int y = row + i - 1, z = column + j - 1;  // padding of one
                    bool inside = image < images && y >= 0 && y < height && z >= 0 && z < width;
                    d[i][j] = inside ? x[((size_t(image) * channels + c) * height + y) * width + z] : 0.0f;
                }
            transform_input(d);
            for (int i = 0; i < 16; ++i) v[i][threadIdx.x] = d[i / 4][i % 4];
        }
        __syncthreads();
        if (filter < filters)
            for (int i = 0; i < 16; ++i) m[i] += u[(size_t(filter) * channels + c) * 16 + i] * v[i][threadIdx.x % TILES];
        __syncthreads();
    }
    if (filter >= filters || image >= images) return;
    float t[2][4];  // A^T m
    for (int j = 0; j < 4; ++j) t[0][j] = m[j] + m[4 + j] + m[8 + j], t[1][j] = m[4 + j] - m[8 + j] - m[12 + j];
    for (int i = 0; i < 2; ++i) {
        float y[2] = {t[i][0] + t[i][1] + t[i][2], t[i][1] - t[i][2] - t[i][3]};
        for (int j = 0; j < 2; ++j)
            if (row + i < height && column + j < width)
                out[((size_t(image) * filters + filter) * height + row + i) * width + column + j] = y[j];
    }
}

int main() {
    const int images = 2, channels = 5, height = 9, width = 11, filters = 6;  // odd extents: half of the last tiles is cut
    std::vector<float> x = values(images * channels * height * width, 10), g = values(filters * channels * 9, 11);
    std::vector<float> expected(images * filters * height * width);
    for (size_t at = 0; at < expected.size(); ++at) {
        int column = at % width, row = at / width % height, f = at / (width * height) % filters, n = at / (width * height) / filters;
        double sum = 0;
        for (int c = 0; c < channels; ++c)
            for (int tap = 0; tap < 9; ++tap) {
                int y = row + tap / 3 - 1, z = column + tap % 3 - 1;
                if (y < 0 || y >= height || z < 0 || z >= width) continue;
                sum += double(x[((n * channels + c) * height + y) * width + z]) * g[(f * channels + c) * 9 + tap];
            }
        expected[at] = sum;
    }
    float *out = on_device(std::vector<float>(expected.size(), NAN)), *u = on_device(std::vector<float>(filters * channels * 16, NAN));
    transform_filters<<<1, 64>>>(u, on_device(g), filters * channels);
    dim3 grid((images * ((height + 1) / 2) * ((width + 1) / 2) + TILES - 1) / TILES, (filters + FILTERS - 1) / FILTERS);
    convolve<<<grid, TILES * FILTERS>>>(out, on_device(x), u, images, channels, height, width, filters);
    return compare(on_host(out, expected.size()), expected, 1e-4f);
}
