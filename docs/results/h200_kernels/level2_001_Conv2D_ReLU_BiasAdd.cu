// KernelBlaster: level2/001, fp16, size medium
// measured speed-up over the start 177.233x (95 %: 175.043 to 178.976), 16753.47 us -> 94.53 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// relu(conv(x)) + bias as an implicit GEMM on Hopper's warpgroup tensor-core instructions.
// 3x3 and at most 64 input channels: persistent blocks keep the weights of 128 output channels in shared memory. Two
// producer warpgroups transpose alternate input rows into a ring of five rows; two consumer warpgroups compute 128 output
// channels by one row of 128 pixels each, independently, so that the stores of one hide behind the products of the other.
// Operands are stored as planes of 8 channels, [chunk][pixel][8], without swizzle: every 8 pixels are one core matrix,
// and moving by one pixel moves the descriptor by 16 bytes. Results are transposed between lanes before the stores, so
// that a warp writes 128 contiguous bytes of one channel.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Shape {
    int64_t in_channels, out_channels, height, width, kernel_size;
};

// ------------------------------------------------------------------------------------------------- primitives

__device__ __forceinline__ uint32_t smem_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    }
}

__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }

template <int N>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

__device__ __forceinline__ void wgmma_m64n128k16(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
          "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
          "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(accumulate));
}

// K-major, no swizzle: `k_step` bytes between the two 8-element halves of k, 128 bytes between groups of 8 rows.
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t k_step) {
    return static_cast<uint64_t>((address & 0x3ffff) >> 4) | static_cast<uint64_t>(k_step >> 4) << 16 |
           static_cast<uint64_t>(128 >> 4) << 32;
}

// ------------------------------------------------------------------------------------------------- convolution

constexpr int CONSUMERS = 256, PRODUCERS = 256, THREADS = CONSUMERS + PRODUCERS;
constexpr int OC = 128;       // output channels of a block
constexpr int CHANNELS = 64;  // input channels, zero-padded
constexpr int COLS = 128;     // pixels of a row of the ring; the last two outputs are not used
constexpr int OUT_COLS = COLS - 2;
constexpr int SLOTS = 5;
constexpr int ROW_BYTES = COLS * 16;                       // of one plane
constexpr int PLANE_BYTES = SLOTS * ROW_BYTES + 32;        // a shifted read passes the last row by two pixels
constexpr int WEIGHT_PLANE_BYTES = OC * 16;
constexpr int TAP_BYTES = 8 * WEIGHT_PLANE_BYTES;
constexpr int WEIGHT_BYTES = 9 * TAP_BYTES;
constexpr int RING_BYTES = 8 * PLANE_BYTES;
constexpr int SMEM_BYTES = WEIGHT_BYTES + RING_BYTES + 2 * SLOTS * 8;
static_assert(SMEM_BYTES <= 232448, "shared memory of a block");

template <bool VEC>
__global__ void __launch_bounds__(THREADS, 1) conv3x3_wgmma_kernel(
    __half* __restrict__ output, const __half* __restrict__ x, const __half* __restrict__ bias,
    const __half* __restrict__ conv_weight, const __half* __restrict__ conv_bias, int channels, int out_channels,
    int height, int width, int col_tiles, int pairs, int units, bool weight_vector, bool store_vector) {
    extern __shared__ __align__(1024) unsigned char smem[];
    unsigned char* weights = smem;
    unsigned char* ring = smem + WEIGHT_BYTES;
    const uint32_t full = smem_address(smem + WEIGHT_BYTES + RING_BYTES);
    const uint32_t empty = full + SLOTS * 8;

    const int tid = threadIdx.x, lane = tid & 31;
    const int oc0 = blockIdx.y * OC;
    const int64_t plane = static_cast<int64_t>(height) * width;
    const int unit_begin = static_cast<int>(static_cast<int64_t>(units) * blockIdx.x / gridDim.x);
    const int unit_end = static_cast<int>(static_cast<int64_t>(units) * (static_cast<int64_t>(blockIdx.x) + 1) / gridDim.x);

    if (tid == 0) {
        for (int s = 0; s < SLOTS; ++s) {
            barrier_init(full + s * 8, 128);              // every thread of the warpgroup that writes the row
            barrier_init(empty + s * 8, CONSUMERS / 32);  // every consumer warp
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }

    // Weights: [tap][chunk of 8 input channels][output channel][8].
    for (int item = tid; item < OC * 8; item += THREADS) {
        const int oc = item & (OC - 1), chunk = item / OC;
        const int left = oc0 + oc < out_channels ? channels - chunk * 8 : 0;
        const __half* source = conv_weight + (static_cast<int64_t>(oc0 + oc) * channels + chunk * 8) * 9;
        uint32_t v[36];
        if (weight_vector) {
#pragma unroll
            for (int i = 0; i < 9; ++i) {
                uint4 part = make_uint4(0, 0, 0, 0);
                if (left > 0) part = __ldg(reinterpret_cast<const uint4*>(source) + i);
                v[4 * i] = part.x;
                v[4 * i + 1] = part.y;
                v[4 * i + 2] = part.z;
                v[4 * i + 3] = part.w;
            }
        } else {
#pragma unroll
            for (int i = 0; i < 36; ++i) {
                const uint32_t low = 2 * i < left * 9 ? __half_as_ushort(source[2 * i]) : 0;
                const uint32_t high = 2 * i + 1 < left * 9 ? __half_as_ushort(source[2 * i + 1]) : 0;
                v[i] = low | high << 16;
            }
        }
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            uint32_t e[8];
#pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int k = c * 9 + tap;
                e[c] = (k & 1) ? v[k >> 1] >> 16 : v[k >> 1] & 0xffff;
            }
            *reinterpret_cast<uint4*>(weights + tap * TAP_BYTES + chunk * WEIGHT_PLANE_BYTES + oc * 16) =
                make_uint4(e[0] | e[1] << 16, e[2] | e[3] << 16, e[4] | e[5] << 16, e[6] | e[7] << 16);
        }
    }
    fence_proxy_async();
    __syncthreads();

    if (tid >= CONSUMERS) {
        // ---------------------------------------------------------------- producers: alternate input rows, in order
        asm volatile("setmaxnreg.dec.sync.aligned.u32 88;\n");
        const int worker = (tid - CONSUMERS) & 127, producer = (tid - CONSUMERS) >> 7;
        const int pixel_pair = worker & 63, first_chunk = worker >> 6;  // chunks first_chunk + 0, 2, 4, 6
        const int odd_first = (lane >> 2) & 1;  // eight neighbouring lanes then write to different banks
        uint32_t sent = 0;                      // rows before this run, an even number
        int unit = unit_begin;
        while (unit < unit_end) {
            const int strip = unit / pairs;
            const int pair = unit - strip * pairs;
            const int sample = strip / col_tiles;
            const int col = (strip - sample * col_tiles) * OUT_COLS + pixel_pair * 2;
            const int left = unit_end - unit;
            const int count = left < pairs - pair ? left : pairs - pair;
            const __half* source0 = x + (static_cast<int64_t>(sample) * channels + first_chunk * 8) * plane + col;
            for (int r = producer; r < 2 * count + 2; r += 2) {
                const int y = pair * 2 + r;
                const __half* source = source0 + static_cast<int64_t>(y) * width;
                uint32_t fetched[4][8];
#pragma unroll
                for (int h = 0; h < 4; ++h)
#pragma unroll
                    for (int c = 0; c < 8; ++c) {
                        const bool valid = y < height && (first_chunk + 2 * h) * 8 + c < channels;
                        const __half* from = source + (h * 16 + c) * plane;
                        uint32_t value = 0;
                        if (VEC) {
                            if (valid && col < width) value = __ldg(reinterpret_cast<const unsigned int*>(from));
                        } else {
                            if (valid && col < width) value = __half_as_ushort(from[0]);
                            if (valid && col + 1 < width) {
                                value |= static_cast<uint32_t>(__half_as_ushort(from[1])) << 16;
                            }
                        }
                        fetched[h][c] = value;
                    }
                const uint32_t index = sent + r, slot = index % SLOTS;
                barrier_wait(empty + slot * 8, ((index / SLOTS) & 1) ^ 1);
#pragma unroll
                for (int h = 0; h < 4; ++h) {
                    uint32_t even[4], odd[4];
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        even[c] = __byte_perm(fetched[h][2 * c], fetched[h][2 * c + 1], 0x5410);
                        odd[c] = __byte_perm(fetched[h][2 * c], fetched[h][2 * c + 1], 0x7632);
                    }
                    unsigned char* target =
                        ring + (first_chunk + 2 * h) * PLANE_BYTES + slot * ROW_BYTES + pixel_pair * 32;
#pragma unroll
                    for (int turn = 0; turn < 2; ++turn) {
                        const bool take_odd = (turn ^ odd_first) != 0;
                        *reinterpret_cast<uint4*>(target + (take_odd ? 16 : 0)) =
                            make_uint4(take_odd ? odd[0] : even[0], take_odd ? odd[1] : even[1],
                                       take_odd ? odd[2] : even[2], take_odd ? odd[3] : even[3]);
                    }
                }
                fence_proxy_async();
                barrier_arrive(full + slot * 8);
            }
            sent += 2 * count + 2;
            unit += count;
        }
    } else {
        // ---------------------------------------------------------------- consumers: one output row of each pair
        asm volatile("setmaxnreg.inc.sync.aligned.u32 168;\n");
        const int group = tid >> 7, group_warp = (tid >> 5) & 3;
        const int out_height = height - 2, out_width = width - 2;
        const int64_t out_plane = static_cast<int64_t>(out_height) * out_width;
        __half2 biases[2][2];  // (before, after) of the four channels of this lane
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int channel = oc0 + m * 64 + group_warp * 16 + h * 8 + (lane >> 2);
                __half before = __ushort_as_half(0), after = __ushort_as_half(0);
                if (channel < out_channels) {
                    before = conv_bias[channel];
                    after = bias[channel];
                }
                biases[m][h] = __halves2half2(before, after);
            }
        const uint64_t a_base = descriptor(smem_address(weights), WEIGHT_PLANE_BYTES);
        const uint64_t b_base = descriptor(smem_address(ring), PLANE_BYTES);

        auto wait_row = [&](uint32_t row) {
            barrier_wait(full + (row % SLOTS) * 8, (row / SLOTS) & 1);
            __syncwarp();
        };
        auto release_row = [&](uint32_t row) {
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + (row % SLOTS) * 8);
            __syncwarp();
        };

        uint32_t row = 0;  // counts the rows that the producers have sent; the first one of this unit
        float acc[2][64];
        for (int unit = unit_begin; unit < unit_end; ++unit) {
            const int strip = unit / pairs;
            const int pair = unit - strip * pairs;
            const int sample = strip / col_tiles;
            const int col0 = (strip - sample * col_tiles) * OUT_COLS;
            const bool first = unit == unit_begin || pair == 0;           // this unit starts with new rows
            const bool last = unit + 1 == unit_end || pair + 1 == pairs;  // the next unit starts with new rows
            const uint32_t base = row + group;                            // the three rows of this warpgroup

            if (group == 1 && first) {  // the second output row does not use the first input row
                wait_row(row);
                release_row(row);
            }
            wgmma_fence();
#pragma unroll
            for (int ti = 0; ti < 3; ++ti) {
                wait_row(base + ti);
                const uint64_t b0 = b_base + ((base + ti) % SLOTS) * (ROW_BYTES >> 4);
#pragma unroll
                for (int tj = 0; tj < 3; ++tj)
#pragma unroll
                    for (int kk = 0; kk < 4; ++kk) {
                        const uint64_t a =
                            a_base + (((ti * 3 + tj) * TAP_BYTES + kk * 2 * WEIGHT_PLANE_BYTES) >> 4);
                        const uint64_t b = b0 + ((kk * 2 * PLANE_BYTES + tj * 16) >> 4);
                        const int accumulate = ti + tj + kk > 0;
                        wgmma_m64n128k16(acc[0], a, b, accumulate);
                        wgmma_m64n128k16(acc[1], a + ((64 * 16) >> 4), b, accumulate);
                    }
                wgmma_commit();
                if (ti > 0) {
                    wgmma_wait<1>();  // the products with the row above are complete
                    release_row(base + ti - 1);
                }
            }
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                asm volatile("" : "+f"(acc[0][i]), "+f"(acc[1][i])::"memory");
            }
            if (last) {
                release_row(base + 2);
                if (group == 0) {  // not used by the first output row, but every warp releases every row
                    wait_row(row + 3);
                    release_row(row + 3);
                }
            }
            row += last ? 4 : 2;

            const int y = pair * 2 + group;
            if (y < out_height) {
#pragma unroll
                for (int m = 0; m < 2; ++m) {
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const int channel0 = oc0 + m * 64 + group_warp * 16 + h * 8;
                        const float before = __low2float(biases[m][h]), after = __high2float(biases[m][h]);
                        __half* target0 = output + (static_cast<int64_t>(sample) * out_channels + channel0) * out_plane +
                                          static_cast<int64_t>(y) * out_width + col0;
#pragma unroll
                        for (int g = 0; g < 2; ++g) {
                            uint32_t v[8];
#pragma unroll
                            for (int n = 0; n < 8; ++n) {
                                const int k = (g * 8 + n) * 4 + h * 2;
                                const float v0 = fmaxf(acc[m][k] + before, 0.0f) + after;
                                const float v1 = fmaxf(acc[m][k + 1] + before, 0.0f) + after;
                                const __half2 packed = __floats2half2_rn(v0, v1);
                                v[n] = *reinterpret_cast<const uint32_t*>(&packed);
                            }
                            // Transpose 8 x 8 between the lanes of equal lane % 4: afterwards v[j] is channel0 + j at
                            // pixels g * 64 + 2 * lane and the next.
#pragma unroll
                            for (int s = 4; s > 0; s >>= 1) {
                                const bool upper = ((lane >> 2) & s) != 0;
#pragma unroll
                                for (int i = 0; i < 8; ++i) {
                                    if ((i & s) == 0) {
                                        const uint32_t send = upper ? v[i] : v[i | s];
                                        const uint32_t got = __shfl_xor_sync(0xffffffffu, send, s * 4);
                                        if (upper) {
                                            v[i] = got;
                                        } else {
                                            v[i | s] = got;
                                        }
                                    }
                                }
                            }
                            const int col = g * 64 + 2 * lane;
                            const bool in0 = col < OUT_COLS && col0 + col < out_width;
                            const bool in1 = in0 && col0 + col + 1 < out_width;
                            __half* target = target0 + col;
#pragma unroll
                            for (int j = 0; j < 8; ++j) {
                                const bool valid = channel0 + j < out_channels;
                                if (store_vector) {
                                    if (valid && in0) *reinterpret_cast<uint32_t*>(target) = v[j];
                                } else {
                                    if (valid && in0) target[0] = __ushort_as_half(static_cast<unsigned short>(v[j]));
                                    if (valid && in1) target[1] = __ushort_as_half(static_cast<unsigned short>(v[j] >> 16));
                                }
                                target += out_plane;
                            }
                        }
                    }
                }
            }
            __syncwarp();
        }
    }
}

// Any other shape.
__global__ void conv_fallback_kernel(scalar_t* output, const scalar_t* x, const scalar_t* bias,
                                     const scalar_t* conv_weight, const scalar_t* conv_bias, Shape shape,
                                     int64_t total) {
    const int64_t out_height = shape.height - shape.kernel_size + 1, out_width = shape.width - shape.kernel_size + 1;
    const int64_t window = shape.kernel_size * shape.kernel_size;
    for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < total;
         index += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t col = index % out_width, row = index / out_width % out_height;
        const int64_t image_index = index / (out_width * out_height);
        const int64_t sample = image_index / shape.out_channels, channel = image_index % shape.out_channels;
        float sum = to_float(conv_bias[channel]);
        for (int64_t c = 0; c < shape.in_channels; ++c) {
            const scalar_t* image = x + ((sample * shape.in_channels + c) * shape.height + row) * shape.width + col;
            const scalar_t* filter = conv_weight + (channel * shape.in_channels + c) * window;
            for (int64_t i = 0; i < shape.kernel_size; ++i) {
                for (int64_t j = 0; j < shape.kernel_size; ++j) {
                    sum += to_float(image[i * shape.width + j]) * to_float(filter[i * shape.kernel_size + j]);
                }
            }
        }
        output[index] = from_float(fmaxf(sum, 0.0f) + to_float(bias[channel]));
    }
}

static bool aligned(const void* pointer, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

void launch_gpu_implementation(void* output, void* x, void* bias, void* conv_weight, void* conv_bias,
                               int64_t batch_size, int64_t in_channels, int64_t out_channels, int64_t height,
                               int64_t width, int64_t kernel_size) {
    const int64_t out_height = height - kernel_size + 1, out_width = width - kernel_size + 1;
    const int64_t total = batch_size * out_channels * out_height * out_width;
    if (batch_size <= 0 || out_channels <= 0 || out_height <= 0 || out_width <= 0) return;

    const int64_t col_tiles = (out_width + OUT_COLS - 1) / OUT_COLS, pairs = (out_height + 1) / 2;
    const int64_t units = batch_size * col_tiles * pairs;
    if (kernel_size != 3 || in_channels > CHANNELS || units > 1000000000 || height > 1000000000 || width > 1000000000) {
        const Shape shape{in_channels, out_channels, height, width, kernel_size};
        const int64_t blocks = (total + 255) / 256;
        conv_fallback_kernel<<<static_cast<unsigned>(blocks < 1048576 ? blocks : 1048576), 256>>>(
            static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(bias),
            static_cast<const scalar_t*>(conv_weight), static_cast<const scalar_t*>(conv_bias), shape, total);
        check(cudaGetLastError());
        return;
    }

    static int processors = 0;
    if (processors == 0) {
        int device = 0;
        check(cudaGetDevice(&device));
        check(cudaFuncSetAttribute(conv3x3_wgmma_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));
        check(cudaFuncSetAttribute(conv3x3_wgmma_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));
        check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    }
    const int64_t oc_tiles = (out_channels + OC - 1) / OC;
    int64_t blocks = processors / oc_tiles;
    if (blocks < 1) blocks = 1;
    if (blocks > units) blocks = units;
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(oc_tiles));
    const bool weight_vector = in_channels % 8 == 0 && aligned(conv_weight, 16);
    const bool store_vector = out_width % 2 == 0 && aligned(output, 4);
    __half* y = static_cast<__half*>(output);
    const __half* image = static_cast<const __half*>(x);
    const __half* b = static_cast<const __half*>(bias);
    const __half* w = static_cast<const __half*>(conv_weight);
    const __half* cb = static_cast<const __half*>(conv_bias);
    if (width % 2 == 0 && aligned(x, 4)) {
        conv3x3_wgmma_kernel<true><<<grid, THREADS, SMEM_BYTES>>>(
            y, image, b, w, cb, static_cast<int>(in_channels), static_cast<int>(out_channels),
            static_cast<int>(height), static_cast<int>(width), static_cast<int>(col_tiles), static_cast<int>(pairs),
            static_cast<int>(units), weight_vector, store_vector);
    } else {
        conv3x3_wgmma_kernel<false><<<grid, THREADS, SMEM_BYTES>>>(
            y, image, b, w, cb, static_cast<int>(in_channels), static_cast<int>(out_channels),
            static_cast<int>(height), static_cast<int>(width), static_cast<int>(col_tiles), static_cast<int>(pairs),
            static_cast<int>(units), weight_vector, store_vector);
    }
    check(cudaGetLastError());
}
