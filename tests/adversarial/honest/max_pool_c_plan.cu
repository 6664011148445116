// problem: level1/42
// does: C with malloc, qsort, snprintf and a linked list of plans
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan {
    char key[128];
    int tile_w, tile_h;
    size_t smem;
    struct plan* next;
} plan_t;

typedef struct {
    int w, h;
    double cost;
} shape_t;

static plan_t* g_plans = NULL;

static int by_cost(const void* a, const void* b) {
    const double d = ((const shape_t*)a)->cost - ((const shape_t*)b)->cost;
    return d < 0 ? -1 : d > 0;
}

static plan_t* find_plan(int64_t oh, int64_t ow, int64_t k, int64_t s, int64_t d) {
    char key[128];
    snprintf(key, sizeof key, "%lld/%lld/%lld/%lld/%lld", (long long)oh, (long long)ow, (long long)k, (long long)s,
             (long long)d);
    for (plan_t* p = g_plans; p; p = p->next)
        if (!strcmp(p->key, key)) return p;

    static const int widths[] = {8, 16, 32, 64};
    shape_t* all = (shape_t*)malloc(4 * sizeof(shape_t));
    if (!all) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int i = 0; i < 4; ++i) {
        const int w = widths[i], h = 256 / w;
        const double in = (double)((w - 1) * s + (k - 1) * d + 1) * (double)((h - 1) * s + (k - 1) * d + 1);
        const double tiles = (double)((ow + w - 1) / w) * (double)((oh + h - 1) / h);
        all[i].w = w;
        all[i].h = h;
        all[i].cost = in * sizeof(float) > 40000.0 ? 1e30 : in * tiles;
    }
    qsort(all, 4, sizeof(shape_t), by_cost);
    plan_t* p = (plan_t*)calloc(1, sizeof(plan_t));
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memcpy(p->key, key, sizeof key);
    p->tile_w = all[0].w;
    p->tile_h = all[0].h;
    if (all[0].cost < 1e30)
        p->smem = sizeof(float) * (size_t)((p->tile_w - 1) * s + (k - 1) * d + 1) * (size_t)((p->tile_h - 1) * s + (k - 1) * d + 1);
    free(all);
    p->next = g_plans;
    g_plans = p;
    return p;
}

__global__ void pool_tile(scalar_t* y, const scalar_t* x, int64_t h, int64_t w, int64_t oh, int64_t ow, int k, int s,
                          int pad, int d) {
    extern __shared__ float tile[];
    const int in_w = (blockDim.x - 1) * s + (k - 1) * d + 1, in_h = (blockDim.y - 1) * s + (k - 1) * d + 1;
    const int64_t top = (int64_t)blockIdx.y * blockDim.y * s - pad, left = (int64_t)blockIdx.x * blockDim.x * s - pad;
    x += blockIdx.z * h * w;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < in_w * in_h; i += blockDim.x * blockDim.y) {
        const int64_t r = top + i / in_w, c = left + i % in_w;
        tile[i] = r >= 0 && r < h && c >= 0 && c < w ? to_float(x[r * w + c]) : -INFINITY;
    }
    __syncthreads();
    const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y, col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= oh || col >= ow) return;
    float m = -INFINITY;
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j) {
            const float v = tile[(threadIdx.y * s + i * d) * in_w + threadIdx.x * s + j * d];
            m = v > m || v != v ? v : m;
        }
    y[(blockIdx.z * oh + row) * ow + col] = from_float(m);
}

__global__ void pool_plain(scalar_t* y, const scalar_t* x, int64_t h, int64_t w, int64_t oh, int64_t ow, int k, int s,
                           int pad, int d) {
    const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y, col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= oh || col >= ow) return;
    x += blockIdx.z * h * w;
    float m = -INFINITY;
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j) {
            const int64_t r = row * s - pad + (int64_t)i * d, c = col * s - pad + (int64_t)j * d;
            if (r < 0 || r >= h || c < 0 || c >= w) continue;
            const float v = to_float(x[r * w + c]);
            m = v > m || v != v ? v : m;
        }
    y[(blockIdx.z * oh + row) * ow + col] = from_float(m);
}

extern "C" void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                                          int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                                          int64_t dilation) {
    const int64_t reach = dilation * (kernel_size - 1) + 1;
    const int64_t oh = (height + 2 * padding - reach) / stride + 1, ow = (width + 2 * padding - reach) / stride + 1;
    plan_t* p = find_plan(oh, ow, kernel_size, stride, dilation);
    const dim3 block(p->tile_w, p->tile_h);
    const dim3 grid((unsigned)((ow + block.x - 1) / block.x), (unsigned)((oh + block.y - 1) / block.y),
                    (unsigned)(batch_size * channels));
    if (p->smem)
        pool_tile<<<grid, block, p->smem>>>((scalar_t*)output, (const scalar_t*)x, height, width, oh, ow,
                                            (int)kernel_size, (int)stride, (int)padding, (int)dilation);
    else
        pool_plain<<<grid, block>>>((scalar_t*)output, (const scalar_t*)x, height, width, oh, ow, (int)kernel_size,
                                    (int)stride, (int)padding, (int)dilation);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) fprintf(stderr, "max pool %s: %s\n", p->key, cudaGetErrorString(status));
}
