// problem: level1/42
// precision: fp16
// kind: honest
// expects: two planes packed into half2 in dynamic shared memory (opt-in above 48 KB), __hmax2_nan over the window, 24 template instances picked from a constexpr table, a plain kernel for windows that do not fit; exact; must be called correct
// size: small
#include <kernelblaster/scalar.cuh>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <utility>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int TW = 32, TH = 8, THREADS = TW * TH, KERNELS = 8, STRIDES = 3;
constexpr int64_t MOST = 1 << 30, SHARED = 220 * 1024;

struct Shape { int64_t planes, h, w, oh, ow, k, s, pad, dil, tiles_x, tiles_y, tasks; };

// K and S: window and stride, or 0 for those of the argument. One block: a tile of the outputs of two planes.
template <int K, int S>
__global__ void __launch_bounds__(THREADS) pool_kernel(__half* out, const __half* x, Shape g) {
    extern __shared__ __half2 tile[];
    const int k = K ? K : int(g.k), s = S ? S : int(g.s), dil = int(g.dil);
    const int tw = (TW - 1) * s + dil * (k - 1) + 1, th = (TH - 1) * s + dil * (k - 1) + 1;
    const __half lowest = __ushort_as_half(0xfc00);
    const int tx = threadIdx.x % TW, ty = threadIdx.x / TW;
    for (int64_t task = blockIdx.x; task < g.tasks; task += gridDim.x) {
        const int64_t ox = task % g.tiles_x * TW, oy = task / g.tiles_x % g.tiles_y * TH;
        const int64_t plane = task / g.tiles_x / g.tiles_y * 2;
        const bool second = plane + 1 < g.planes;
        const __half *a = x + plane * g.h * g.w, *b = a + g.h * g.w;
        for (int i = threadIdx.x; i < tw * th; i += THREADS) {
            const int64_t r = oy * s - g.pad + i / tw, c = ox * s - g.pad + i % tw;
            const bool inside = r >= 0 && r < g.h && c >= 0 && c < g.w;
            tile[i] = __halves2half2(inside ? a[r * g.w + c] : lowest, inside && second ? b[r * g.w + c] : lowest);
        }
        __syncthreads();
        __half2 best = __half2half2(lowest);
        const auto window = [&](int i, int j) {
            best = __hmax2_nan(best, tile[(ty * s + i * dil) * tw + tx * s + j * dil]);
        };
#pragma unroll
        for (int i = 0; i < k; ++i)
#pragma unroll
            for (int j = 0; j < k; ++j) window(i, j);
        if (ox + tx < g.ow && oy + ty < g.oh) {
            __half* to = out + (plane * g.oh + oy + ty) * g.ow + ox + tx;
            to[0] = __low2half(best);
            if (second) to[g.oh * g.ow] = __high2half(best);
        }
        __syncthreads();
    }
}

__global__ void plain_kernel(__half* out, const __half* x, Shape g) {
    const int64_t count = g.planes * g.oh * g.ow, step = int64_t(gridDim.x) * THREADS;
    for (int64_t at = int64_t(blockIdx.x) * THREADS + threadIdx.x; at < count; at += step) {
        const int64_t ox = at % g.ow, oy = at / g.ow % g.oh, plane = at / g.ow / g.oh;
        __half best = __ushort_as_half(0xfc00);
        for (int64_t i = 0; i < g.k; ++i)
            for (int64_t j = 0; j < g.k; ++j) {
                const int64_t r = oy * g.s - g.pad + i * g.dil, c = ox * g.s - g.pad + j * g.dil;
                if (r >= 0 && r < g.h && c >= 0 && c < g.w) best = __hmax_nan(best, x[(plane * g.h + r) * g.w + c]);
            }
        out[at] = best;
    }
}

using Kernel = void (*)(__half*, const __half*, Shape);

template <size_t... I>
static std::array<Kernel, sizeof...(I)> instances(std::index_sequence<I...>) {
    return {pool_kernel<int(I) / STRIDES, int(I) % STRIDES>...};
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    static const auto table = instances(std::make_index_sequence<KERNELS * STRIDES>{});
    const int64_t reach = dilation * (kernel_size - 1) + 1;
    Shape g{batch_size * channels, height, width, (height + 2 * padding - reach) / stride + 1,
            (width + 2 * padding - reach) / stride + 1, kernel_size, stride, padding, dilation, 0, 0, 0};
    g.tiles_x = (g.ow + TW - 1) / TW;
    g.tiles_y = (g.oh + TH - 1) / TH;
    g.tasks = (g.planes + 1) / 2 * g.tiles_x * g.tiles_y;
    auto* to = static_cast<__half*>(output);
    const auto* from = static_cast<const __half*>(x);
    const int64_t bytes = ((TW - 1) * stride + reach) * ((TH - 1) * stride + reach) * int64_t(sizeof(__half2));
    if (bytes <= SHARED) {
        const Kernel kernel = table[(kernel_size < KERNELS ? kernel_size : 0) * STRIDES + (stride < STRIDES ? stride : 0)];
        if (bytes > 48 * 1024)
            check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
        kernel<<<unsigned(g.tasks < MOST ? g.tasks : MOST), THREADS, size_t(bytes)>>>(to, from, g);
    } else {
        const int64_t blocks = (g.planes * g.oh * g.ow + THREADS - 1) / THREADS;
        plain_kernel<<<unsigned(blocks < MOST ? blocks : MOST), THREADS>>>(to, from, g);
    }
    check(cudaGetLastError());
}
