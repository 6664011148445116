// KernelBlaster: level1/040, fp16, size medium
// measured speed-up over the start 39.389x (95 %: 39.138 to 39.496), 4831.30 us -> 122.66 us per call, cold L2
// device: NVIDIA H200 (sm_90)
// LayerNorm over very long samples: a persistent grid, one block per SM, that loops over the samples. 16 warps in all,
// so that 128 registers per thread hold weights and biases without a spill.
// The whole GPU works on one sample at a time: every block owns one slice of the normalized shape. Its weights and
// biases stay in registers for all samples, x streams once from DRAM through a three-stage shared ring (cp.async), and
// the slice statistics are exchanged through a split grid barrier that a helper warp runs beside the arithmetic.
#include <kernelblaster/scalar.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static_assert(sizeof(scalar_t) == 2, "written for fp16");

constexpr int STAGES = 3;         // slices of x in shared memory
constexpr int RING = 4;           // statistics slots in global memory
constexpr int MAX_BLOCKS = 1024;  // blocks of the persistent grid
constexpr int PAD = 32;           // one barrier word per 128 bytes

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ void copy_async_16(uint4* shared, const uint4* global) {
    const unsigned int address = static_cast<unsigned int>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global) : "memory");
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ unsigned int load_acquire(const unsigned int* address) {
    unsigned int value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(value) : "l"(address) : "memory");
    return value;
}

// Chan: joins (count, mean, sum of squared deviations) of two disjoint sets, either of which may be empty.
__device__ __forceinline__ void merge(float& n, float& mean, float& m2, float other_n, float other_mean,
                                      float other_m2) {
    const float total = n + other_n;
    const float ratio = total > 0.0f ? other_n / total : 0.0f;
    const float delta = other_mean - mean;
    m2 += other_m2 + delta * delta * (n * ratio);
    mean += delta * ratio;
    n = total;
}

// Lane 0 receives the result.
__device__ __forceinline__ void warp_merge(float& n, float& mean, float& m2) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other_n = __shfl_down_sync(0xffffffffu, n, offset);
        const float other_mean = __shfl_down_sync(0xffffffffu, mean, offset);
        const float other_m2 = __shfl_down_sync(0xffffffffu, m2, offset);
        merge(n, mean, m2, other_n, other_mean, other_m2);
    }
}

__device__ __forceinline__ __half2 as_half2(unsigned int bits) { return *reinterpret_cast<const __half2*>(&bits); }

__device__ __forceinline__ unsigned int normalize_pair(unsigned int x, unsigned int w, unsigned int b, float mean,
                                                       float scale) {
    const float2 value = __half22float2(as_half2(x));
    const float2 weight = __half22float2(as_half2(w));
    const float2 bias = __half22float2(as_half2(b));
    const __half2 result = __floats2half2_rn(fmaf((value.x - mean) * scale, weight.x, bias.x),
                                             fmaf((value.y - mean) * scale, weight.y, bias.y));
    return *reinterpret_cast<const unsigned int*>(&result);
}

// The compiler must not hoist what it derives from the value (the conversions to float) out of the sample loop: that
// doubles the registers that weights and biases hold, and spills.
__device__ __forceinline__ void keep_packed(uint4& value) {
    asm volatile("" : "+r"(value.x), "+r"(value.y), "+r"(value.z), "+r"(value.w));
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__device__ __forceinline__ void accumulate(const uint4 raw, float shift, float& sum0, float& sum1, float& squares0,
                                           float& squares1) {
    const unsigned int words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const float2 value = __half22float2(as_half2(words[e]));
        const float d0 = value.x - shift, d1 = value.y - shift;
        sum0 += d0;
        sum1 += d1;
        squares0 = fmaf(d0, d0, squares0);
        squares1 = fmaf(d1, d1, squares1);
    }
}

__device__ __forceinline__ uint4 normalize_vector(const uint4 raw, const uint4 w, const uint4 b, float mean,
                                                  float scale) {
    uint4 out;
    out.x = normalize_pair(raw.x, w.x, b.x, mean, scale);
    out.y = normalize_pair(raw.y, w.y, b.y, mean, scale);
    out.z = normalize_pair(raw.z, w.z, b.z, mean, scale);
    out.w = normalize_pair(raw.w, w.w, b.w, mean, scale);
    return out;
}

// THREADS compute threads and one helper warp; a thread owns up to VECS vectors of 8 values of the block's slice (and,
// with TAIL, one more whose weights and biases are in shared memory), and copies, reduces and normalizes just those, so
// that the ring needs no block barrier.
template <int THREADS, int VECS, bool TAIL>
__global__ void __launch_bounds__(THREADS + 32, 1)
layer_norm_persistent(uint4* __restrict__ output, const uint4* __restrict__ x, const uint4* __restrict__ weight,
                      const uint4* __restrict__ bias, int batch, int64_t vectors, int slice, float eps,
                      unsigned int* arrivals, float2* partials) {
    constexpr int WARPS = THREADS / 32;
    constexpr int BODY = THREADS * VECS;
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    uint4* const ring = reinterpret_cast<uint4*>(shared_bytes);
    __shared__ float warp_n[2][WARPS], warp_mean[2][WARPS], warp_m2[2][WARPS];
    __shared__ float result_mean[2], result_scale[2];

    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const bool helper = t >= THREADS;
    const int blocks = gridDim.x;
    const int64_t start = static_cast<int64_t>(blockIdx.x) * slice;
    const int64_t left = vectors - start;
    const int length = left <= 0 ? 0 : (left < slice ? static_cast<int>(left) : slice);

    const bool has_tail = TAIL && !helper && BODY + t < length;
    // Behind the ring: weights and biases of the tail, each written and read by its own thread only.
    uint4* const tail_w = ring + STAGES * slice;
    uint4* const tail_b = tail_w + (slice > BODY ? slice - BODY : 0);

    uint4 w[VECS], b[VECS];
#pragma unroll
    for (int k = 0; k < VECS; ++k) w[k] = b[k] = make_uint4(0, 0, 0, 0);
    if (!helper) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            if (s < batch) {
                const uint4* source = x + s * vectors + start;
#pragma unroll
                for (int k = 0; k < VECS; ++k) {
                    const int v = t + k * THREADS;
                    if (v < length) copy_async_16(ring + s * slice + v, source + v);
                }
                if (has_tail) copy_async_16(ring + s * slice + BODY + t, source + BODY + t);
            }
            copy_commit();
        }
#pragma unroll
        for (int k = 0; k < VECS; ++k) {
            const int v = t + k * THREADS;
            if (v < length) {
                w[k] = __ldg(weight + start + v);
                b[k] = __ldg(bias + start + v);
            }
        }
        if (has_tail) {
            tail_w[t] = __ldg(weight + start + BODY + t);
            tail_b[t] = __ldg(bias + start + BODY + t);
        }
    }

    unsigned int token = 0;  // helper, lane 0: the barrier word as it was at this block's last arrival
    for (int i = 0; i <= batch; ++i) {
        const int parity = i & 1;
        if (!helper) {
            if (i < batch) {  // statistics of this thread's part of sample i
                if (i == 0) {
                    copy_wait<2>();
                } else {
                    copy_wait<1>();
                }
                const uint4* stage = ring + (i % STAGES) * slice;
                const int first = warp * 32;  // the warp's first vector; lanes own none if it is past the end
                float sum0 = 0.0f, sum1 = 0.0f, squares0 = 0.0f, squares1 = 0.0f, shift = 0.0f;
                unsigned int owned = 0;
                if (t < length) shift = __low2float(as_half2(stage[t].x));
                // One shift for the warp, a member of its set: what cancels is bounded by the set's own deviations.
                shift = __shfl_sync(0xffffffffu, shift, 0);
#pragma unroll
                for (int k = 0; k < VECS; ++k) {
                    const int v = t + k * THREADS;
                    if (v < length) {
                        accumulate(stage[v], shift, sum0, sum1, squares0, squares1);
                        owned += 8;
                    }
                }
                if (has_tail) {
                    accumulate(stage[BODY + t], shift, sum0, sum1, squares0, squares1);
                    owned += 8;
                }
                const float n = static_cast<float>(__reduce_add_sync(0xffffffffu, owned));
                const float sum = warp_sum(sum0 + sum1);
                const float squares = warp_sum(squares0 + squares1);
                const float offset = first < length ? sum / n : 0.0f;
                const float mean = shift + offset;
                const float m2 = fmaxf(squares - sum * offset, 0.0f);
                if (lane == 0) {
                    warp_n[parity][warp] = n;
                    warp_mean[parity][warp] = mean;
                    warp_m2[parity][warp] = m2;
                }
            }
        } else if (i > 0) {  // meanwhile: the statistics of sample i - 1 from all blocks
            const int slot = (i - 1) % RING;
            if (lane == 0) {
                while (((load_acquire(arrivals + slot * PAD) ^ token) & 0x80000000u) == 0) {
                }
                __threadfence();
            }
            __syncwarp();
            double sum = 0.0, squares = 0.0;
            for (int j = lane; j < blocks; j += 32) {
                const int64_t rest = vectors - static_cast<int64_t>(j) * slice;
                const int64_t part = rest <= 0 ? 0 : (rest < slice ? rest : slice);
                const double n = static_cast<double>(part * 8);
                const float2 p = __ldcg(partials + slot * MAX_BLOCKS + j);
                const double m = p.x;
                sum += n * m;
                squares += static_cast<double>(p.y) + n * m * m;
            }
#pragma unroll
            for (int offset = 16; offset > 0; offset /= 2) {
                sum += __shfl_xor_sync(0xffffffffu, sum, offset);
                squares += __shfl_xor_sync(0xffffffffu, squares, offset);
            }
            if (lane == 0) {
                const double count = static_cast<double>(vectors) * 8.0;
                const double mean = sum / count;
                double variance = (squares - sum * mean) / count;
                if (variance < 0.0) variance = 0.0;
                result_mean[parity] = static_cast<float>(mean);
                result_scale[parity] = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(eps)));
            }
        }
        __syncthreads();
        if (helper) {
            if (i < batch) {  // publish this block's statistics of sample i
                float n = 0.0f, mean = 0.0f, m2 = 0.0f;
                if (lane < WARPS) {
                    n = warp_n[parity][lane];
                    mean = warp_mean[parity][lane];
                    m2 = warp_m2[parity][lane];
                }
                warp_merge(n, mean, m2);
                if (lane == 0) {
                    const int slot = i % RING;
                    __stcg(partials + slot * MAX_BLOCKS + blockIdx.x, make_float2(mean, m2));
                    __threadfence();
                    // All arrivals together add 2^31: the top bit flips when the last block is there.
                    const unsigned int step =
                        blockIdx.x == 0 ? 0x80000000u - static_cast<unsigned int>(blocks - 1) : 1u;
                    token = atomicAdd(arrivals + slot * PAD, step);
                }
                __syncwarp();
            }
        } else if (i > 0) {  // write sample i - 1, then refill its stage
            const float mean = result_mean[parity], scale = result_scale[parity];
            uint4* stage = ring + ((i - 1) % STAGES) * slice;
            uint4* target = output + (i - 1) * vectors + start;
#pragma unroll
            for (int k = 0; k < VECS; ++k) {
                const int v = t + k * THREADS;
                keep_packed(w[k]);
                keep_packed(b[k]);
                if (v < length) __stcs(target + v, normalize_vector(stage[v], w[k], b[k], mean, scale));
            }
            if (has_tail) {
                __stcs(target + BODY + t, normalize_vector(stage[BODY + t], tail_w[t], tail_b[t], mean, scale));
            }
            if (i + 2 < batch) {
                const uint4* source = x + (i + 2) * vectors + start;
#pragma unroll
                for (int k = 0; k < VECS; ++k) {
                    const int v = t + k * THREADS;
                    if (v < length) copy_async_16(stage + v, source + v);
                }
                if (has_tail) copy_async_16(stage + BODY + t, source + BODY + t);
            }
            copy_commit();
        }
    }
}

// Any size and alignment: one block per sample, three passes.
template <int THREADS>
__device__ float block_sum(float value) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < THREADS / 32 ? partial[lane] : 0.0f;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    __syncthreads();
    return value;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
layer_norm_general(scalar_t* __restrict__ output, const scalar_t* __restrict__ x, const scalar_t* __restrict__ weight,
                   const scalar_t* __restrict__ bias, int64_t batch, int64_t count, float eps) {
    for (int64_t index = blockIdx.x; index < batch; index += gridDim.x) {
        const scalar_t* sample = x + index * count;
        scalar_t* out = output + index * count;
        float sum = 0.0f;
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < count; i += THREADS) sum += to_float(sample[i]);
        const float mean = block_sum<THREADS>(sum) / static_cast<float>(count);
        float squares = 0.0f;
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < count; i += THREADS) {
            const float centred = to_float(sample[i]) - mean;
            squares = fmaf(centred, centred, squares);
        }
        const float scale = rsqrtf(block_sum<THREADS>(squares) / static_cast<float>(count) + eps);
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < count; i += THREADS) {
            out[i] = from_float((to_float(sample[i]) - mean) * scale * to_float(weight[i]) + to_float(bias[i]));
        }
    }
}

template <int THREADS>
static void launch_general(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                           int64_t batch, int64_t count, float eps) {
    const unsigned int blocks = static_cast<unsigned int>(batch < 65536 ? batch : 65536);
    layer_norm_general<THREADS><<<blocks, THREADS>>>(output, x, weight, bias, batch, count, eps);
    check(cudaGetLastError());
}

// False when the grid cannot be resident at once; nothing has run then.
template <int THREADS, int VECS, bool TAIL>
static bool launch_persistent(uint4* output, const uint4* x, const uint4* weight, const uint4* bias, int batch,
                              int64_t vectors, int slice, int blocks, float eps, unsigned int* arrivals,
                              float2* partials) {
    auto kernel = layer_norm_persistent<THREADS, VECS, TAIL>;
    const int tail = slice > THREADS * VECS ? slice - THREADS * VECS : 0;
    if (tail > (TAIL ? THREADS : 0)) return false;
    const size_t shared = (static_cast<size_t>(STAGES) * slice + 2 * static_cast<size_t>(tail)) * sizeof(uint4);
    if (cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    void* arguments[] = {&output, &x, &weight, &bias, &batch, &vectors, &slice, &eps, &arrivals, &partials};
    const cudaError_t status =
        cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned int>(blocks)),
                                    dim3(THREADS + 32), arguments, shared, static_cast<cudaStream_t>(0));
    if (status != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return true;
}

void launch_gpu_implementation(void* output, void* x, void* ln_weight, void* ln_bias, int64_t batch_size,
                               int64_t features, int64_t dim1, int64_t dim2, float eps) {
    const int64_t count = features * dim1 * dim2;
    if (batch_size <= 0 || count <= 0) return;

    static int sms = 0;
    if (sms == 0) {
        int device = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
        if (sms > MAX_BLOCKS) sms = MAX_BLOCKS;
    }

    const int64_t vectors = count / 8;
    // Short samples do not fill the GPU in this way; those of the general kernel are batched over blocks instead.
    if (count % 8 == 0 && vectors >= static_cast<int64_t>(sms) * 32 && batch_size <= (1 << 30)) {
        const int64_t slice64 = (vectors + sms - 1) / sms;
        if (slice64 <= 4096) {
            // Barrier words and exchanged statistics. The words are zeroed once: each use leaves the low bits zero.
            static unsigned char* scratch = nullptr;
            if (scratch == nullptr) {
                const size_t bytes =
                    RING * PAD * sizeof(unsigned int) + static_cast<size_t>(RING) * MAX_BLOCKS * sizeof(float2);
                check(cudaMalloc(reinterpret_cast<void**>(&scratch), bytes));
                check(cudaMemsetAsync(scratch, 0, bytes, 0));
            }
            unsigned int* arrivals = reinterpret_cast<unsigned int*>(scratch);
            float2* partials = reinterpret_cast<float2*>(scratch + RING * PAD * sizeof(unsigned int));

            const int slice = static_cast<int>(slice64);
            const int blocks = static_cast<int>((vectors + slice - 1) / slice);
            const int batch = static_cast<int>(batch_size);
            uint4* out = static_cast<uint4*>(output);
            const uint4* in = static_cast<const uint4*>(x);
            const uint4* weight = static_cast<const uint4*>(ln_weight);
            const uint4* bias = static_cast<const uint4*>(ln_bias);
            bool done = false;
            if (slice <= 480) {
                done = launch_persistent<480, 1, false>(out, in, weight, bias, batch, vectors, slice, blocks, eps,
                                                        arrivals, partials);
            } else if (slice <= 960) {
                done = launch_persistent<480, 2, false>(out, in, weight, bias, batch, vectors, slice, blocks, eps,
                                                        arrivals, partials);
            } else if (slice <= 1920) {
                done = launch_persistent<480, 4, false>(out, in, weight, bias, batch, vectors, slice, blocks, eps,
                                                        arrivals, partials);
            } else {
                done = launch_persistent<480, 8, true>(out, in, weight, bias, batch, vectors, slice, blocks, eps,
                                                        arrivals, partials);
            }
            if (done) return;
        }
    }

    scalar_t* out = static_cast<scalar_t*>(output);
    const scalar_t* in = static_cast<const scalar_t*>(x);
    const scalar_t* weight = static_cast<const scalar_t*>(ln_weight);
    const scalar_t* bias = static_cast<const scalar_t*>(ln_bias);
    if (count <= 4096) {
        launch_general<256>(out, in, weight, bias, batch_size, count, eps);
    } else {
        launch_general<1024>(out, in, weight, bias, batch_size, count, eps);
    }
}
