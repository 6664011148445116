// KernelBlaster: level1/042, fp16, size medium
// measured speed-up over the start 21.373x (95 %: 21.206 to 21.413), 1593.58 us -> 74.56 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// Max pooling. 4x4 windows with stride 1: separable and register-blocked. A thread takes the maxima down the columns of
// 8x8 outputs in registers, the maxima along the rows follow from shared memory (padded rows, 16-byte accesses of
// consecutive lanes), eight outputs per thread, at positions for which the 16-byte stores are aligned whatever the
// output's width. A warp takes every eighth row, for which that alignment is the same: the shift is a template argument.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Window {
    int64_t kernel_size, stride, padding, dilation;
    __host__ __device__ int64_t outputs(int64_t extent) const {
        return (extent + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1;
    }
};

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int BAND = 32;          // output rows of a block
constexpr int ROWS = 8;           // output rows of a thread in the vertical pass
constexpr int LEFT = 16;          // -inf columns before a row in shared memory
constexpr int EXTRA = 48;         // LEFT and those after it
constexpr uint32_t LOWEST = 0xfc00fc00u;  // two times -inf
static_assert(WARPS == 8 && BAND == 4 * WARPS, "a warp's rows share their alignment, eight lanes for each end");

__device__ __forceinline__ uint32_t max2(uint32_t a, uint32_t b) {
    const __half2 m = __hmax2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
    return *reinterpret_cast<const uint32_t*>(&m);
}

__device__ __forceinline__ uint4 max8(uint4 a, uint4 b) {
    return make_uint4(max2(a.x, b.x), max2(a.y, b.y), max2(a.z, b.z), max2(a.w, b.w));
}

// Along `rows` rows of a warp. The window of the first output of group g starts SHIFT halves into row[g].
template <int SHIFT>
__device__ __forceinline__ void along_rows(const uint4* row, uint4* target, int first, int end, int rows, int row_step,
                                           int target_step) {
    constexpr int H = SHIFT / 2;
#pragma unroll 1
    for (int k = 0; k < rows; ++k) {
        for (int g = first; g < end; g += 32) {
            const uint4 a = row[g], b = row[g + 1];
            uint32_t w[9] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, LOWEST};
            if (SHIFT >= 6) w[8] = row[g + 2].x;
            uint32_t m[5];
#pragma unroll
            for (int i = 0; i < 5; ++i) {
                // The halves between two words: the second element of each pair, or the first if SHIFT is odd.
                const uint32_t between = __byte_perm(w[H + i], w[H + i + 1], 0x5432);
                m[i] = max2(between, (SHIFT & 1) ? w[H + i + 1] : w[H + i]);
            }
            __stcs(target + g, make_uint4(max2(m[0], m[1]), max2(m[1], m[2]), max2(m[2], m[3]), max2(m[3], m[4])));
        }
        row += row_step;
        target += target_step;
    }
}

// width % 8 == 0, 16-byte aligned tensors. `pitch` = width + EXTRA halves.
__global__ void __launch_bounds__(THREADS, 4) max_pool4_kernel(
    __half* __restrict__ output, const __half* __restrict__ x, int height, int width, int out_height, int out_width,
    int padding, int bands) {
    extern __shared__ __align__(16) unsigned char smem_bytes[];
    __half* smem = reinterpret_cast<__half*>(smem_bytes);
    const int pitch = width + EXTRA;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int64_t image_index = blockIdx.x / static_cast<unsigned>(bands);
    const int row0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(bands)) * BAND;
    const __half* image = x + image_index * height * width;

    // Down the columns.
    const int groups = width >> 3;
    for (int item = tid; item < groups * (BAND / ROWS); item += THREADS) {
        const int part = item / groups, group = item - part * groups;
        const int first = row0 + part * ROWS - padding;
        const __half* source = image + static_cast<int64_t>(first) * width + group * 8;
        uint4 v[ROWS + 3];
        if (first >= 0 && first + ROWS + 3 <= height) {
#pragma unroll
            for (int r = 0; r < ROWS + 3; ++r) {
                v[r] = __ldg(reinterpret_cast<const uint4*>(source));
                source += width;
            }
        } else {
#pragma unroll
            for (int r = 0; r < ROWS + 3; ++r) {
                const int y = first + r;
                v[r] = make_uint4(LOWEST, LOWEST, LOWEST, LOWEST);
                if (y >= 0 && y < height) v[r] = __ldg(reinterpret_cast<const uint4*>(source));
                source += width;
            }
        }
        __half* target = smem + part * ROWS * pitch + LEFT + group * 8;
#pragma unroll
        for (int r = 0; r < ROWS + 2; ++r) v[r] = max8(v[r], v[r + 1]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) *reinterpret_cast<uint4*>(target + r * pitch) = max8(v[r], v[r + 2]);
    }

    for (int i = tid; i < BAND * (EXTRA / 8); i += THREADS) {
        const int r = i / (EXTRA / 8), chunk = i % (EXTRA / 8);
        const int col = chunk < LEFT / 8 ? chunk * 8 : width + chunk * 8;
        *reinterpret_cast<uint4*>(smem + r * pitch + col) = make_uint4(LOWEST, LOWEST, LOWEST, LOWEST);
    }
    __syncthreads();

    // Along the rows: rows warp, warp + 8, ... of the band, whose first outputs all lie s past a 16-byte boundary.
    const int band_rows = min(BAND, out_height - row0);
    const int rows = band_rows > warp ? (band_rows - warp + WARPS - 1) / WARPS : 0;
    const int64_t start = (image_index * out_height + row0 + warp) * out_width;
    const int s = static_cast<int>(start & 7);
    const int end = (out_width + s) >> 3;
    {
        const int t = LEFT - s - padding;  // column of the window of group 0
        const uint4* row = reinterpret_cast<const uint4*>(smem + warp * pitch) + (t >> 3);
        uint4* target = reinterpret_cast<uint4*>(output + (start - s));
        const int first = (s > 0 ? 1 : 0) + lane;
        switch (t & 7) {
            case 0: along_rows<0>(row, target, first, end, rows, pitch, out_width); break;
            case 1: along_rows<1>(row, target, first, end, rows, pitch, out_width); break;
            case 2: along_rows<2>(row, target, first, end, rows, pitch, out_width); break;
            case 3: along_rows<3>(row, target, first, end, rows, pitch, out_width); break;
            case 4: along_rows<4>(row, target, first, end, rows, pitch, out_width); break;
            case 5: along_rows<5>(row, target, first, end, rows, pitch, out_width); break;
            case 6: along_rows<6>(row, target, first, end, rows, pitch, out_width); break;
            default: along_rows<7>(row, target, first, end, rows, pitch, out_width); break;
        }
    }

    // The ends of the rows that fill no 16 bytes: eight lanes for each of the warp's four rows, head then tail.
    const int k = lane >> 3, e = lane & 7;
    if (k < rows) {
        const __half* line = smem + (warp + k * WARPS) * pitch + LEFT - padding;
        __half* target = output + start + static_cast<int64_t>(k) * WARPS * out_width;
        // A row within one group (end == 0, s > 0) is all head.
        if (s > 0 && e < 8 - s && e < out_width) {
            const __half* v = line + e;
            target[e] = __hmax(__hmax(v[0], v[1]), __hmax(v[2], v[3]));
        }
        const int col = end * 8 - s + e;
        if ((end > 0 || s == 0) && col < out_width) {
            const __half* v = line + col;
            target[col] = __hmax(__hmax(v[0], v[1]), __hmax(v[2], v[3]));
        }
    }
}

// Any other window or alignment: four outputs of a row per thread.
template <typename Index>
__global__ void max_pool_any_kernel(scalar_t* output, const scalar_t* x, Index height, Index width, Index out_height,
                                    Index out_width, Index kernel_size, Index stride, Index padding, Index dilation,
                                    int64_t images, Index row_blocks, Index col_blocks) {
    const int64_t per_image = static_cast<int64_t>(row_blocks) * col_blocks;
    const int64_t image_index = blockIdx.x / per_image;
    const Index rest = static_cast<Index>(blockIdx.x % per_image);
    const Index row = rest / col_blocks * 8 + threadIdx.y;
    const Index col0 = rest % col_blocks * 128 + threadIdx.x;
    if (image_index >= images || row >= out_height) return;
    const scalar_t* image = x + image_index * height * width;
    float maximum[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (Index i = 0; i < kernel_size; ++i) {
        const Index in_row = row * stride - padding + i * dilation;
        if (in_row < 0 || in_row >= height) continue;
        const scalar_t* line = image + static_cast<int64_t>(in_row) * width;
        for (Index j = 0; j < kernel_size; ++j) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const Index in_col = (col0 + k * 32) * stride - padding + j * dilation;
                if (in_col >= 0 && in_col < width) maximum[k] = fmaxf(maximum[k], to_float(line[in_col]));
            }
        }
    }
    scalar_t* target = output + (image_index * out_height + row) * out_width;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (col0 + k * 32 < out_width) target[col0 + k * 32] = from_float(maximum[k]);
    }
}

static bool aligned16(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const Window window{kernel_size, stride, padding, dilation};
    const int64_t out_height = window.outputs(height), out_width = window.outputs(width);
    const int64_t images = batch_size * channels;
    if (images <= 0 || out_height <= 0 || out_width <= 0) return;

    const int64_t bytes = BAND * (width + EXTRA) * 2;
    const int64_t bands = (out_height + BAND - 1) / BAND;
    if (kernel_size == 4 && stride == 1 && dilation == 1 && padding >= 0 && padding <= 2 && width % 8 == 0 &&
        aligned16(x) && aligned16(output) && bytes <= 200 * 1024 && height < (1 << 28) &&
        images * bands < (int64_t(1) << 31)) {
        if (bytes > 48 * 1024) {
            check(cudaFuncSetAttribute(max_pool4_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(bytes)));
        }
        max_pool4_kernel<<<static_cast<unsigned>(images * bands), THREADS, static_cast<size_t>(bytes)>>>(
            static_cast<__half*>(output), static_cast<const __half*>(x), static_cast<int>(height),
            static_cast<int>(width), static_cast<int>(out_height), static_cast<int>(out_width),
            static_cast<int>(padding), static_cast<int>(bands));
        check(cudaGetLastError());
        return;
    }

    const int64_t row_blocks = (out_height + 7) / 8, col_blocks = (out_width + 127) / 128;
    const unsigned blocks = static_cast<unsigned>(images * row_blocks * col_blocks);
    const int64_t limit = int64_t(1) << 28;
    if (height < limit && width < limit && kernel_size * dilation < limit && padding < limit &&
        out_height * stride < limit && out_width * stride < limit) {
        max_pool_any_kernel<int><<<blocks, dim3(32, 8)>>>(
            static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<int>(height),
            static_cast<int>(width), static_cast<int>(out_height), static_cast<int>(out_width),
            static_cast<int>(kernel_size), static_cast<int>(stride), static_cast<int>(padding),
            static_cast<int>(dilation), images, static_cast<int>(row_blocks), static_cast<int>(col_blocks));
    } else {
        max_pool_any_kernel<int64_t><<<blocks, dim3(32, 8)>>>(
            static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), height, width, out_height, out_width,
            kernel_size, stride, padding, dilation, images, row_blocks, col_blocks);
    }
    check(cudaGetLastError());
}
