// A B^T with every block doing the same number of K steps, across the borders of tiles. A block that begins inside a tile
// leaves its part in a workspace and raises a flag; the block that began the tile adds the parts in order.
#include "check.cuh"

constexpr int TILE = 32, STEP = 16;

// One K step of a tile: thread t holds row t / 8, columns 4 (t % 8) and on.
__device__ void step(float (&d)[4], const float *a, const float *b, int row, int column, int at, int m, int n, int k) {
    __shared__ float left[TILE][STEP + 1], right[TILE][STEP + 1];
    for (int i = threadIdx.x; i < TILE * STEP; i += blockDim.x) {
        int y = i / STEP, x = at + i % STEP;
        left[y][i % STEP] = row + y < m && x < k ? a[(row + y) * k + x] : 0.0f;
        right[y][i % STEP] = column + y < n && x < k ? b[(column + y) * k + x] : 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < STEP; ++i)
        for (int j = 0; j < 4; ++j) d[j] += left[threadIdx.x / 8][i] * right[threadIdx.x % 8 * 4 + j][i];
    __syncthreads();
}

__global__ void __launch_bounds__(256) product(
    float *c, float *parts, int *flags, const float *a, const float *b, int m, int n, int k) {
    int across = (n + TILE - 1) / TILE, steps = (k + STEP - 1) / STEP, total = across * ((m + TILE - 1) / TILE) * steps;
    int at = int(size_t(blockIdx.x) * total / gridDim.x), end = int(size_t(blockIdx.x + 1) * total / gridDim.x);
    while (at < end) {
        int tile = at / steps, last = min(end, (tile + 1) * steps), row = tile / across * TILE, column = tile % across * TILE;
        bool begins = at == tile * steps;
        float d[4] = {};
        for (; at < last; ++at) step(d, a, b, row, column, at % steps * STEP, m, n, k);
        if (!begins) {  // at most once per block: its first tile
            for (int j = 0; j < 4; ++j) parts[(blockIdx.x * 256 + threadIdx.x) * 4 + j] = d[j];
            __threadfence();
            __syncthreads();
            if (threadIdx.x == 0) atomicExch(&flags[blockIdx.x], 1);
            continue;
        }
        for (int from = blockIdx.x + 1, done = last; done < (tile + 1) * steps; ++from) {
            if (threadIdx.x == 0) {
                while (atomicAdd(&flags[from], 0) == 0) {}
                flags[from] = 0;  // the next call starts clean
            }
            __syncthreads();
            __threadfence();
            for (int j = 0; j < 4; ++j) d[j] += __ldcg(&parts[(from * 256 + threadIdx.x) * 4 + j]);
            done = int(size_t(from + 1) * total / gridDim.x);
        }
        for (int j = 0; j < 4; ++j) {
            int y = row + threadIdx.x / 8, x = column + threadIdx.x % 8 * 4 + j;
            if (y < m && x < n) c[y * n + x] = d[j];
        }
    }
}

int main() {
    const int m = 70, n = 75, k = 150, blocks = 7;  // 9 tiles of 10 steps; a block does 12 or 13. All blocks are resident.
    std::vector<float> a = values(m * k, 4), b = values(n * k, 5), expected(m * n);
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[x * k + i];
            expected[y * n + x] = sum;
        }
    float *c = on_device(std::vector<float>(m * n, NAN)), *parts = on_device(std::vector<float>(blocks * 256 * 4, NAN));
    int *flags = on_device(std::vector<int>(blocks, 0));
    float *da = on_device(a), *db = on_device(b);
    for (int call = 0; call < 2; ++call) product<<<blocks, 256>>>(c, parts, flags, da, db, m, n, k);
    for (int flag : on_host(flags, blocks))
        if (flag) return std::printf("a flag is left\n"), 1;
    return compare(on_host(c, m * n), expected, 1e-4f);
}
