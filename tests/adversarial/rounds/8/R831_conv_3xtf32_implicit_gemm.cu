// problem: level1/80
// precision: fp32
// kind: honest
// expects: implicit-GEMM convolution in fp32 by emulation on tensor cores (error-corrected TF32: each operand is split
// expects: in a high and a low TF32 part, four products, partial sums promoted to fp32 registers after each k-tile),
// expects: im2col gathered by 4-byte cp.async with zero-fill, double buffered. Blocks that met infinities or values at
// expects: the end of fp32's range redo their tile with plain FFMA, since inf - inf would spoil the split. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int BM = 64, BN = 128, BK = 16;  // output channels x pixels x reduction
constexpr int APITCH = BK + 4, BPITCH = BN + 8;
constexpr int NTHREADS = 256;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// Division by an invariant for dividends below 2^31.
struct FastDivmod {
    int divisor;
    unsigned multiplier, shift;
    explicit FastDivmod(int d) : divisor(d), multiplier(0), shift(0) {
        if (d != 1) {
            unsigned log = 0;
            while ((1ull << log) < static_cast<unsigned long long>(d)) ++log;
            const unsigned p = 31 + log;
            multiplier = static_cast<unsigned>(((1ull << p) + d - 1) / d);
            shift = p - 32;
        }
    }
    __device__ __forceinline__ void operator()(int& quotient, int& remainder, int dividend) const {
        quotient = divisor == 1 ? dividend : static_cast<int>(__umulhi(static_cast<unsigned>(dividend), multiplier) >> shift);
        remainder = dividend - quotient * divisor;
    }
};

struct Shape {
    int64_t pixels;  // batch * out_h * out_w
    int in_channels, out_channels, height, width, kernel_h, kernel_w, pad_h, pad_w, dil_h, dil_w, out_h, out_w, reduction;
    FastDivmod by_taps, by_kernel_w;
};

__device__ __forceinline__ void copy4(float* to, const float* from, bool valid) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = valid ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy16(float* to, const float* from, bool valid) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ uint32_t to_tf32(float v) {
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

struct Split {
    uint32_t high, low;
};

__device__ __forceinline__ Split split(float v, bool& special) {
    special |= (__float_as_uint(v) & 0x7f800000u) >= 0x7f000000u;
    Split s;
    s.high = to_tf32(v);
    s.low = to_tf32(v - __uint_as_float(s.high));
    return s;
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool WIDE_WEIGHTS>
__global__ void __launch_bounds__(NTHREADS, 2)
    conv_kernel(float* __restrict__ output, const float* __restrict__ x, const float* __restrict__ weight, const Shape s) {
    __shared__ __align__(16) float sa[2][BM][APITCH];
    __shared__ __align__(16) float sb[2][BK][BPITCH];

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int g = lane >> 2, t = lane & 3;
    const int wm = (warp & 1) * 32, wn = (warp >> 1) * 32;
    const int oc0 = blockIdx.y * BM;
    const int64_t pixel0 = static_cast<int64_t>(blockIdx.x) * BN;
    const int plane = s.out_h * s.out_w;

    // The pixel whose column of the im2col matrix this thread fetches.
    const int column = tid & (BN - 1), first_row = tid / BN;
    const int64_t my_pixel = pixel0 + column;
    const bool my_valid = my_pixel < s.pixels;
    int top = 0, left = 0;
    const float* image = x;
    if (my_valid) {
        const int64_t sample = my_pixel / plane;
        const int within = static_cast<int>(my_pixel - sample * plane);
        top = within / s.out_w - s.pad_h;
        left = within % s.out_w - s.pad_w;
        image = x + sample * s.in_channels * static_cast<int64_t>(s.height) * s.width;
    }

    auto fetch = [&](int stage, int k0) {
        if constexpr (WIDE_WEIGHTS) {  // 64 x 16 floats: one 16-byte piece per thread
            const int row = tid >> 2, k = (tid & 3) * 4;
            const bool valid = oc0 + row < s.out_channels && k0 + k < s.reduction;
            copy16(&sa[stage][row][k], valid ? weight + static_cast<int64_t>(oc0 + row) * s.reduction + k0 + k : weight, valid);
        } else {
#pragma unroll
            for (int i = 0; i < BM * BK / NTHREADS; ++i) {
                const int at = tid + i * NTHREADS, row = at / BK, k = at % BK;
                const bool valid = oc0 + row < s.out_channels && k0 + k < s.reduction;
                copy4(&sa[stage][row][k], valid ? weight + static_cast<int64_t>(oc0 + row) * s.reduction + k0 + k : weight, valid);
            }
        }
#pragma unroll
        for (int i = 0; i < BK * BN / NTHREADS; ++i) {
            const int row = first_row + i * (NTHREADS / BN), k = k0 + row;
            int channel, tap, kh, kw;
            s.by_taps(channel, tap, k);
            s.by_kernel_w(kh, kw, tap);
            const int h = top + kh * s.dil_h, w = left + kw * s.dil_w;
            const bool valid = my_valid && k < s.reduction && static_cast<unsigned>(h) < static_cast<unsigned>(s.height) &&
                               static_cast<unsigned>(w) < static_cast<unsigned>(s.width);
            copy4(&sb[stage][row][column], valid ? image + (static_cast<int64_t>(channel) * s.height + h) * s.width + w : x, valid);
        }
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

    float total[2][4][4] = {};
    bool special = false;
    const int tiles = (s.reduction + BK - 1) / BK;
    fetch(0, 0);
    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile & 1;
        if (tile + 1 < tiles) {
            fetch(stage ^ 1, (tile + 1) * BK);
            asm volatile("cp.async.wait_group 1;\n" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;\n" ::: "memory");
        }
        __syncthreads();

        // Tensor cores round their sums towards zero: short sums there, long ones in fp32 registers.
        float part[2][4][4] = {};
#pragma unroll
        for (int kk = 0; kk < BK; kk += 8) {
            uint32_t ah[2][4], al[2][4], bh[4][2], bl[4][2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const Split v = split(sa[stage][wm + i * 16 + g + (j & 1) * 8][kk + t + (j >> 1) * 4], special);
                    ah[i][j] = v.high, al[i][j] = v.low;
                }
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const Split v = split(sb[stage][kk + t + j * 4][wn + i * 8 + g], special);
                    bh[i][j] = v.high, bl[i][j] = v.low;
                }
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {  // small terms first
                    mma(part[i][j], al[i], bl[j]);
                    mma(part[i][j], al[i], bh[j]);
                    mma(part[i][j], ah[i], bl[j]);
                    mma(part[i][j], ah[i], bh[j]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) total[i][j][e] += part[i][j][e];
        __syncthreads();
    }

    const bool redo = __syncthreads_or(special);
    if (!redo) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int64_t pixel = pixel0 + wn + j * 8 + t * 2 + e;
                if (pixel >= s.pixels) continue;
                const int64_t sample = pixel / plane;
                float* to = output + sample * (s.out_channels - 1) * static_cast<int64_t>(plane) + pixel;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int oc = oc0 + wm + i * 8 + g;
                    if (oc < s.out_channels) to[static_cast<int64_t>(oc) * plane] = total[i >> 1][j][(i & 1) * 2 + e];
                }
            }
        }
        return;
    }

    // Rare: infinities, or values that rounding to TF32 could make infinite.
    for (int at = tid; at < BM * BN; at += NTHREADS) {
        const int oc = oc0 + at / BN;
        const int64_t pixel = pixel0 + at % BN;
        if (oc >= s.out_channels || pixel >= s.pixels) continue;
        const int64_t sample = pixel / plane;
        const int within = static_cast<int>(pixel - sample * plane);
        const int h0 = within / s.out_w - s.pad_h, w0 = within % s.out_w - s.pad_w;
        const float* filter = weight + static_cast<int64_t>(oc) * s.reduction;
        const float* from = x + sample * s.in_channels * static_cast<int64_t>(s.height) * s.width;
        float sum = 0.0f;
        for (int c = 0; c < s.in_channels; ++c, from += static_cast<int64_t>(s.height) * s.width) {
            for (int kh = 0; kh < s.kernel_h; ++kh) {
                const int h = h0 + kh * s.dil_h;
                for (int kw = 0; kw < s.kernel_w; ++kw, ++filter) {
                    const int w = w0 + kw * s.dil_w;
                    if (h >= 0 && h < s.height && w >= 0 && w < s.width) {
                        sum = fmaf(from[static_cast<int64_t>(h) * s.width + w], *filter, sum);
                    }
                }
            }
        }
        output[(sample * s.out_channels + oc) * plane + within] = sum;
    }
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* conv2d_weight, int64_t batch_size, int64_t in_channels,
                               int64_t out_channels, int64_t height, int64_t width, int64_t kernel_h,
                               int64_t kernel_w, int64_t padding_h, int64_t padding_w, int64_t dilation_h,
                               int64_t dilation_w) {
    static_assert(sizeof(scalar_t) == 4, "for fp32");
    const int64_t out_h = height + 2 * padding_h - dilation_h * (kernel_h - 1);
    const int64_t out_w = width + 2 * padding_w - dilation_w * (kernel_w - 1);
    const int64_t pixels = batch_size * out_h * out_w, reduction = in_channels * kernel_h * kernel_w;
    if (pixels <= 0 || out_channels <= 0) return;
    const Shape shape{pixels,
                      static_cast<int>(in_channels),
                      static_cast<int>(out_channels),
                      static_cast<int>(height),
                      static_cast<int>(width),
                      static_cast<int>(kernel_h),
                      static_cast<int>(kernel_w),
                      static_cast<int>(padding_h),
                      static_cast<int>(padding_w),
                      static_cast<int>(dilation_h),
                      static_cast<int>(dilation_w),
                      static_cast<int>(out_h),
                      static_cast<int>(out_w),
                      static_cast<int>(reduction),
                      FastDivmod(static_cast<int>(kernel_h * kernel_w)),
                      FastDivmod(static_cast<int>(kernel_w))};
    const dim3 grid(static_cast<unsigned>((pixels + BN - 1) / BN), static_cast<unsigned>((out_channels + BM - 1) / BM));
    const auto kernel = reduction % 4 == 0 && reinterpret_cast<uintptr_t>(conv2d_weight) % 16 == 0 ? conv_kernel<true>
                                                                                                  : conv_kernel<false>;
    kernel<<<grid, NTHREADS>>>(static_cast<float*>(output), static_cast<const float*>(x),
                               static_cast<const float*>(conv2d_weight), shape);
    check(cudaGetLastError());
}
