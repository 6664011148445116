// problem: level1/097
// precision: fp16
// kind: honest
// expects: correct and fast: flash-style attention whose head dimension (1024 at full size) is split over a cluster of up to 8 blocks; partial scores are summed through distributed shared memory, in the same order in all blocks; ldmatrix, mma.sync, cp.async in two stages; weights as two halves each (p = high + low, scaled by 2^15), so that they are as exact as fp32; tiles of V with infinities take fp32 products, where a weight does not round to 0
// size: small
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#define UNROLL _Pragma("unroll")
namespace cg = cooperative_groups;
constexpr int THREADS = 128, ROWS = 64, KEYS = 64, PARTS = 16;  // PARTS: pairs of scores of a thread
constexpr float LIFT = 32768.0f;
static void check(cudaError_t status) { if (status != cudaSuccess) std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status)), std::exit(1); }
__device__ __forceinline__ uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], const __half* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(p)) : "memory"); }
__device__ __forceinline__ void ldmatrix_transposed(uint32_t (&r)[4], const __half* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(p)) : "memory"); }
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Two weights as halves, and what these leave of them.
__device__ __forceinline__ void split(uint32_t& high, uint32_t& low, float a, float b) {
    const __half2 h = __floats2half2_rn(a, b), l = __floats2half2_rn(a - __low2float(h), b - __high2float(h));
    high = *reinterpret_cast<const uint32_t*>(&h), low = *reinterpret_cast<const uint32_t*>(&l);
}
// 64 rows and W columns of a head, from (row0, column0) on; zeros outside. 16 bytes at once where rows allow it.
template <int W>
__device__ void load_tile(__half* to, const __half* head, int64_t row0, int64_t column0, int64_t rows, int64_t columns) {
    for (int i = threadIdx.x; i < 64 * W / 8; i += THREADS) {
        const int64_t row = row0 + i / (W / 8), column = column0 + i % (W / 8) * 8;
        __half* place = to + i / (W / 8) * (W + 8) + i % (W / 8) * 8;
        if (columns % 8 == 0) {
            const bool inside = row < rows && column < columns;
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at(place)), "l"(inside ? head + row * columns + column : head), "r"(inside ? 16 : 0) : "memory");
        } else {
            for (int e = 0; e < 8; ++e) place[e] = row < rows && column + e < columns ? head[row * columns + column + e] : __half(0.0f);
        }
    }
}
template <int W>
__global__ void __launch_bounds__(THREADS) attention_kernel(__half* output, const __half* q, const __half* k, const __half* v, int64_t heads, int64_t length, int64_t size, float scale) {
    constexpr int PITCH = W + 8, AREA = 64 * PITCH;
    extern __shared__ __align__(128) unsigned char memory[];
    float2* shared_scores = reinterpret_cast<float2*>(memory);  // [2][PARTS][THREADS]
    __half* q_tile = reinterpret_cast<__half*>(memory + 2 * PARTS * THREADS * sizeof(float2));
    __half *k_tiles = q_tile + AREA, *v_tiles = k_tiles + 2 * AREA;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t column0 = static_cast<int64_t>(rank) * W, row_tiles = (length + ROWS - 1) / ROWS, key_tiles = (length + KEYS - 1) / KEYS;
    int exchange = 0;
    for (int64_t work = blockIdx.x / blocks; work < heads * row_tiles; work += gridDim.x / blocks) {
        const int64_t head = work / row_tiles * length * size, row0 = work % row_tiles * ROWS;
        float sums[W / 8][4] = {}, maxima[2] = {-INFINITY, -INFINITY}, totals[2] = {0.0f, 0.0f};
        load_tile<W>(q_tile, q + head, row0, column0, length, size);
        load_tile<W>(k_tiles, k + head, 0, column0, length, size);
        load_tile<W>(v_tiles, v + head, 0, column0, length, size);
        asm volatile("cp.async.commit_group;" ::: "memory");
        for (int64_t tile = 0; tile < key_tiles; ++tile) {
            const int now = tile & 1;
            if (tile + 1 < key_tiles) {
                load_tile<W>(k_tiles + (now ^ 1) * AREA, k + head, (tile + 1) * KEYS, column0, length, size);
                load_tile<W>(v_tiles + (now ^ 1) * AREA, v + head, (tile + 1) * KEYS, column0, length, size);
            }
            asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
            __syncthreads();
            const __half *k_tile = k_tiles + now * AREA, *v_tile = v_tiles + now * AREA;
            float s[8][4] = {};
            for (int step = 0; step < W / 16; ++step) {
                uint32_t a[4], b[4];
                ldmatrix(a, q_tile + (warp * 16 + lane % 16) * PITCH + step * 16 + lane / 16 * 8);
                UNROLL for (int j = 0; j < 8; j += 2) {
                    ldmatrix(b, k_tile + (j * 8 + lane % 8 + lane / 16 * 8) * PITCH + step * 16 + lane / 8 % 2 * 8);
                    mma(s[j], a, b[0], b[1]), mma(s[j + 1], a, b[2], b[3]);
                }
            }
            if (blocks > 1) {  // sums over the parts of the head dimension
                float2* mine = shared_scores + exchange * PARTS * THREADS + threadIdx.x;
                UNROLL for (int i = 0; i < PARTS; ++i) mine[i * THREADS] = make_float2(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
                cluster.sync();
                UNROLL for (int i = 0; i < PARTS; ++i) {
                    float2 sum = make_float2(0.0f, 0.0f);
                    for (unsigned block = 0; block < blocks; ++block) {
                        const float2 part = cluster.map_shared_rank(mine, block)[i * THREADS];
                        sum.x += part.x, sum.y += part.y;
                    }
                    s[i / 2][i % 2 * 2] = sum.x, s[i / 2][i % 2 * 2 + 1] = sum.y;
                }
                exchange ^= 1;  // this half is written again behind the next sync, which no block passes before it has read
            }
            UNROLL for (int half = 0; half < 2; ++half) {  // rows lane / 4 and lane / 4 + 8
                float maximum = maxima[half];
                UNROLL for (int i = 0; i < 16; ++i) {
                    float& score = s[i / 2][half * 2 + i % 2];
                    score = tile * KEYS + i / 2 * 8 + lane % 4 * 2 + i % 2 < length ? score * scale : -INFINITY;
                    maximum = fmaxf(maximum, score);
                }
                maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, 1));
                maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, 2));
                const float shift = maximum == -INFINITY ? 0.0f : maximum, fade = expf(maxima[half] - shift);
                maxima[half] = maximum;
                totals[half] *= fade;
                UNROLL for (int i = 0; i < 16; ++i) totals[half] += s[i / 2][half * 2 + i % 2] = expf(s[i / 2][half * 2 + i % 2] - shift);
                UNROLL for (int n = 0; n < W / 8; ++n) sums[n][half * 2] *= fade, sums[n][half * 2 + 1] *= fade;
            }
            uint32_t infinite = 0;
            for (int i = threadIdx.x; i < KEYS * W / 8; i += THREADS) {
                const uint4 e = *reinterpret_cast<const uint4*>(v_tile + i / (W / 8) * PITCH + i % (W / 8) * 8);
                for (uint32_t pair : {e.x, e.y, e.z, e.w}) infinite |= ((pair & 0x7fff7fffu) + 0x04000400u) & 0x80008000u;
            }
            if (__syncthreads_or(infinite != 0)) {
                UNROLL for (int key = 0; key < KEYS; ++key) {
                    const int from = lane / 4 * 4 + key % 8 / 2;
                    const float p0 = __shfl_sync(~0u, s[key / 8][key % 2], from) * LIFT, p1 = __shfl_sync(~0u, s[key / 8][2 + key % 2], from) * LIFT;
                    if (tile * KEYS + key >= length) continue;
                    UNROLL for (int n = 0; n < W / 8; ++n) {
                        const float2 e = __half22float2(*reinterpret_cast<const __half2*>(v_tile + key * PITCH + n * 8 + lane % 4 * 2));
                        sums[n][0] += p0 * e.x, sums[n][1] += p0 * e.y, sums[n][2] += p1 * e.x, sums[n][3] += p1 * e.y;
                    }
                }
            } else {
                UNROLL for (int step = 0; step < KEYS / 16; ++step) {
                    uint32_t high[4], low[4], b[4];
                    UNROLL for (int i = 0; i < 4; ++i) split(high[i], low[i], s[2 * step + i / 2][i % 2 * 2] * LIFT, s[2 * step + i / 2][i % 2 * 2 + 1] * LIFT);
                    UNROLL for (int n = 0; n < W / 8; n += 2) {
                        ldmatrix_transposed(b, v_tile + (step * 16 + lane % 16) * PITCH + n * 8 + lane / 16 * 8);
                        mma(sums[n], high, b[0], b[1]), mma(sums[n], low, b[0], b[1]);
                        mma(sums[n + 1], high, b[2], b[3]), mma(sums[n + 1], low, b[2], b[3]);
                    }
                }
            }
            __syncthreads();
        }
        UNROLL for (int half = 0; half < 2; ++half) {
            float total = totals[half] + __shfl_xor_sync(~0u, totals[half], 1);
            total = (total + __shfl_xor_sync(~0u, total, 2)) * LIFT;
            const int64_t row = row0 + warp * 16 + lane / 4 + half * 8;
            UNROLL for (int i = 0; i < W / 4; ++i) {
                const int64_t column = column0 + i / 2 * 8 + lane % 4 * 2 + i % 2;
                if (row < length && column < size) output[head + row * size + column] = __float2half_rn(sums[i / 2][half * 2 + i % 2] / total);
            }
        }
    }
    cluster.sync();  // no block leaves while others read its scores
}
// Heads of any size: a block per query, 1024 columns at once.
__global__ void __launch_bounds__(THREADS) plain_kernel(__half* output, const __half* q, const __half* k, const __half* v, int64_t heads, int64_t length, int64_t size, float scale) {
    __shared__ float shared[THREADS];
    for (int64_t row = blockIdx.x; row < heads * length; row += gridDim.x) {
        const int64_t head = row / length * length * size;
        const auto score = [&](int64_t key) { float dot = 0.0f; for (int64_t i = 0; i < size; ++i) dot += __half2float(q[row * size + i]) * __half2float(k[head + key * size + i]); return dot * scale; };
        float maximum = -INFINITY, total = 0.0f;
        for (int64_t key = threadIdx.x; key < length; key += THREADS) maximum = fmaxf(maximum, score(key));
        shared[threadIdx.x] = maximum;
        __syncthreads();
        for (int i = 0; i < THREADS; ++i) maximum = fmaxf(maximum, shared[i]);
        for (int64_t column0 = 0; column0 < size; column0 += 8 * THREADS, total = 0.0f) {
            float sums[8] = {};
            for (int64_t key0 = 0; key0 < length; key0 += THREADS) {
                __syncthreads();
                shared[threadIdx.x] = key0 + threadIdx.x < length ? expf(score(key0 + threadIdx.x) - maximum) : 0.0f;
                __syncthreads();
                for (int i = 0; i < THREADS && key0 + i < length; ++i) {
                    total += shared[i];
                    for (int c = 0; c < 8; ++c) if (column0 + c * THREADS + threadIdx.x < size) sums[c] += shared[i] * __half2float(v[head + (key0 + i) * size + column0 + c * THREADS + threadIdx.x]);
                }
            }
            for (int c = 0; c < 8; ++c) if (column0 + c * THREADS + threadIdx.x < size) output[row * size + column0 + c * THREADS + threadIdx.x] = __float2half_rn(sums[c] / total);
        }
        __syncthreads();
    }
}
template <int W>
static void launch(__half* output, const __half* q, const __half* k, const __half* v, int64_t heads, int64_t length, int64_t size, float scale) {
    unsigned blocks = 1;
    while (static_cast<int64_t>(blocks) * W < size) blocks *= 2;
    const int64_t work = heads * ((length + ROWS - 1) / ROWS), most = 1 << 27;
    const size_t bytes = 2 * PARTS * THREADS * sizeof(float2) + 5 * 64 * (W + 8) * sizeof(__half);
    check(cudaFuncSetAttribute(attention_kernel<W>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension, attribute.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(work < most ? work : most) * blocks), config.blockDim = dim3(THREADS), config.dynamicSmemBytes = bytes;
    config.attrs = &attribute, config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, attention_kernel<W>, output, q, k, v, heads, length, size, scale));
}
void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads, int64_t seq_len, int64_t head_size) {
    __half* out = static_cast<__half*>(output);
    const __half *q = static_cast<const __half*>(Q), *k = static_cast<const __half*>(K), *v = static_cast<const __half*>(V);
    const int64_t all = batch_size * heads, tiles = all * ((seq_len + ROWS - 1) / ROWS);
    const float scale = 1.0f / sqrtf(static_cast<float>(head_size));
    if (head_size > 1024) plain_kernel<<<static_cast<unsigned>(all * seq_len < 1 << 30 ? all * seq_len : 1 << 30), THREADS>>>(out, q, k, v, all, seq_len, head_size, scale);
    else if (head_size <= 256 && tiles < 64) launch<32>(out, q, k, v, all, seq_len, head_size, scale);  // few tiles: more blocks each
    else if (head_size <= 64) launch<64>(out, q, k, v, all, seq_len, head_size, scale);
    else launch<128>(out, q, k, v, all, seq_len, head_size, scale);
    check(cudaGetLastError());
}
