// problem: level1/97
// precision: bf16
// kind: honest
// expects: attention with an online softmax (running maximum and sum, base 2, ex2.approx), scores never in global memory.
// expects: Both products by mma.sync bf16 with fp32 sums; Q, K and V are streamed by cp.async through double buffers, any
// expects: head size: dispatched to 64..1024 columns of the output per block, wider heads in several blocks. Rows that
// expects: are no multiples of 16 bytes use plain loads. Weights are rounded to bf16 before the second product, as
// expects: usual, and summed as rounded. Should be accepted.
// size: small
#include <kernelblaster/scalar.cuh>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int QUERIES = 32, KEYS = 64, DEPTH = 64, NTHREADS = 256;  // a block's tile of scores, and its step along heads
constexpr int V_ROWS = 16;                                          // keys of V at a time
constexpr int QK_PITCH = DEPTH + 8, P_PITCH = KEYS + 8, S_PITCH = KEYS + 4;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(void* to, const void* from, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_for() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void ldmatrix2_trans(uint32_t (&r)[2], const void* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float exp2_approx(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

template <int WIDTH>
struct Shared {
    scalar_t q[2][QUERIES][QK_PITCH];
    scalar_t k[2][KEYS][QK_PITCH];
    scalar_t v[2][V_ROWS][WIDTH + 8];
    scalar_t p[QUERIES][P_PITCH];
    float s[QUERIES][S_PITCH];
    float correction[QUERIES], total[QUERIES];
};

// ROWS x COLUMNS of a matrix with `size` columns into shared memory, zeros from row_end and column_end on.
template <bool WIDE, int ROWS, int COLUMNS, int PITCH>
__device__ __forceinline__ void fetch(scalar_t (*to)[PITCH], const scalar_t* from, int row0, int row_end, int column0,
                                      int column_end, int64_t size) {
    if constexpr (WIDE) {
        for (int at = threadIdx.x; at < ROWS * COLUMNS / 8; at += NTHREADS) {
            const int row = at / (COLUMNS / 8), column = at % (COLUMNS / 8) * 8;
            const bool valid = row0 + row < row_end && column0 + column < column_end;
            copy16(&to[row][column], valid ? from + (row0 + row) * size + column0 + column : from, valid);
        }
    } else {
        for (int at = threadIdx.x; at < ROWS * COLUMNS; at += NTHREADS) {
            const int row = at / COLUMNS, column = at % COLUMNS;
            const bool valid = row0 + row < row_end && column0 + column < column_end;
            to[row][column] = valid ? from[(row0 + row) * size + column0 + column] : from_float(0.0f);
        }
    }
}

// One block per head, QUERIES queries and WIDTH columns of the output.
template <int WIDTH, bool WIDE>
__global__ void __launch_bounds__(NTHREADS)
    flash_kernel(scalar_t* __restrict__ output, const scalar_t* __restrict__ q, const scalar_t* __restrict__ k,
                 const scalar_t* __restrict__ v, int seq_len, int head_size, int query_tiles, float scale_log2) {
    extern __shared__ __align__(16) unsigned char raw[];
    Shared<WIDTH>& sh = *reinterpret_cast<Shared<WIDTH>*>(raw);
    constexpr int N_TILES = WIDTH / 8 / 8;  // 8 columns each, per warp

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const int query0 = static_cast<int>(blockIdx.x % query_tiles) * QUERIES, out0 = static_cast<int>(blockIdx.y) * WIDTH;
    const int64_t offset = static_cast<int64_t>(blockIdx.x / query_tiles) * seq_len * head_size;
    q += offset, k += offset, v += offset, output += offset;

    const int wm = warp % 2 * 16, wn = warp / 2 * 16;  // a warp's scores
    const int v0 = warp * (WIDTH / 8);                 // a warp's columns of the output
    const int steps = (head_size + DEPTH - 1) / DEPTH;

    float acc[2][N_TILES][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < N_TILES; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

    // Of four queries per warp; the same in all lanes.
    float running_max[4], running_sum[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) running_max[r] = -INFINITY, running_sum[r] = 0.0f;

    for (int key0 = 0; key0 < seq_len; key0 += KEYS) {
        auto fetch_qk = [&](int stage, int step) {
            fetch<WIDE, QUERIES, DEPTH>(sh.q[stage], q, query0, seq_len, step * DEPTH, head_size, head_size);
            fetch<WIDE, KEYS, DEPTH>(sh.k[stage], k, key0, seq_len, step * DEPTH, head_size, head_size);
            commit();
        };
        auto fetch_v = [&](int stage, int part) {
            fetch<WIDE, V_ROWS, WIDTH>(sh.v[stage], v, key0 + part * V_ROWS, seq_len, out0, head_size, head_size);
            commit();
        };

        // Scores of 32 queries and 64 keys.
        float score[2][4] = {};
        fetch_qk(0, 0);
        for (int step = 0; step < steps; ++step) {
            if (step + 1 < steps) {
                fetch_qk((step + 1) & 1, step + 1);
                wait_for<1>();
            } else {
                wait_for<0>();
            }
            __syncthreads();
#pragma unroll
            for (int kk = 0; kk < DEPTH; kk += 16) {
                uint32_t a[4], b[4];
                ldmatrix4(a, &sh.q[step & 1][wm + lane % 16][kk + lane / 16 * 8]);
                // Eight keys and both halves of the step, then the next eight keys.
                ldmatrix4(b, &sh.k[step & 1][wn + lane / 16 * 8 + lane % 8][kk + lane / 8 % 2 * 8]);
                mma(score[0], a, b[0], b[1]);
                mma(score[1], a, b[2], b[3]);
            }
            __syncthreads();
        }
        fetch_v(0, 0);  // arrives during the softmax

#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int column = wn + j * 8 + t * 2 + e % 2;
                sh.s[wm + g + e / 2 * 8][column] = key0 + column < seq_len ? score[j][e] * scale_log2 : -INFINITY;
            }
        }
        __syncthreads();

#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int row = warp * 4 + r;
            const float s0 = sh.s[row][lane], s1 = sh.s[row][lane + 32];
            float most = fmaxf(s0, s1);
#pragma unroll
            for (int o = 16; o > 0; o /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
            most = fmaxf(most, running_max[r]);
            const float pivot = most == -INFINITY ? 0.0f : most;  // no finite score so far: all weights are zero
            const scalar_t p0 = from_float(exp2_approx(s0 - pivot)), p1 = from_float(exp2_approx(s1 - pivot));
            sh.p[row][lane] = p0;
            sh.p[row][lane + 32] = p1;
            float sum = to_float(p0) + to_float(p1);
#pragma unroll
            for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
            const float correction = exp2_approx(running_max[r] - pivot);
            running_sum[r] = running_sum[r] * correction + sum;
            running_max[r] = most;
            if (lane == 0) sh.correction[row] = correction;
        }
        __syncthreads();

#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float upper = sh.correction[i * 16 + g], lower = sh.correction[i * 16 + 8 + g];
            // Before the first tile there is nothing to correct.
            if (key0 == 0) continue;
#pragma unroll
            for (int j = 0; j < N_TILES; ++j) {
                acc[i][j][0] *= upper, acc[i][j][1] *= upper;
                acc[i][j][2] *= lower, acc[i][j][3] *= lower;
            }
        }

        for (int part = 0; part < KEYS / V_ROWS; ++part) {
            if (part + 1 < KEYS / V_ROWS) {
                fetch_v((part + 1) & 1, part + 1);
                wait_for<1>();
            } else {
                wait_for<0>();
            }
            __syncthreads();
            uint32_t a[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) ldmatrix4(a[i], &sh.p[i * 16 + lane % 16][part * V_ROWS + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < N_TILES; ++j) {
                uint32_t b[2];
                ldmatrix2_trans(b, &sh.v[part & 1][lane % 16][v0 + j * 8]);
                mma(acc[0][j], a[0], b[0], b[1]);
                mma(acc[1][j], a[1], b[0], b[1]);
            }
            __syncthreads();
        }
    }

    if (lane == 0) {
#pragma unroll
        for (int r = 0; r < 4; ++r) sh.total[warp * 4 + r] = running_sum[r];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = i * 16 + half * 8 + g, query = query0 + row;
            if (query >= seq_len) continue;
            const float total = sh.total[row];
            scalar_t* to = output + static_cast<int64_t>(query) * head_size;
#pragma unroll
            for (int j = 0; j < N_TILES; ++j) {
                const int column = out0 + v0 + j * 8 + t * 2;
                const float first = acc[i][j][half * 2] / total, second = acc[i][j][half * 2 + 1] / total;
                if (WIDE) {  // even columns at even addresses
                    if (column < head_size) *reinterpret_cast<__nv_bfloat162*>(to + column) = __floats2bfloat162_rn(first, second);
                } else {
                    if (column < head_size) to[column] = from_float(first);
                    if (column + 1 < head_size) to[column + 1] = from_float(second);
                }
            }
        }
    }
}

template <int WIDTH, bool WIDE>
void launch(scalar_t* output, const scalar_t* q, const scalar_t* k, const scalar_t* v, int64_t heads, int64_t seq_len,
            int64_t head_size) {
    const auto kernel = flash_kernel<WIDTH, WIDE>;
    constexpr int bytes = sizeof(Shared<WIDTH>);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const int64_t query_tiles = (seq_len + QUERIES - 1) / QUERIES;
    const dim3 grid(static_cast<unsigned>(heads * query_tiles), static_cast<unsigned>((head_size + WIDTH - 1) / WIDTH));
    const float scale_log2 = static_cast<float>(1.4426950408889634 / sqrt(static_cast<double>(head_size)));
    kernel<<<grid, NTHREADS, bytes>>>(output, q, k, v, static_cast<int>(seq_len), static_cast<int>(head_size),
                                      static_cast<int>(query_tiles), scale_log2);
    check(cudaGetLastError());
}

template <bool WIDE>
void dispatch(scalar_t* output, const scalar_t* q, const scalar_t* k, const scalar_t* v, int64_t heads, int64_t seq_len,
              int64_t head_size) {
    if (head_size <= 64) return launch<64, WIDE>(output, q, k, v, heads, seq_len, head_size);
    if (head_size <= 128) return launch<128, WIDE>(output, q, k, v, heads, seq_len, head_size);
    if (head_size <= 256) return launch<256, WIDE>(output, q, k, v, heads, seq_len, head_size);
    if (head_size <= 512) return launch<512, WIDE>(output, q, k, v, heads, seq_len, head_size);
    launch<1024, WIDE>(output, q, k, v, heads, seq_len, head_size);
}

}  // namespace

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size) {
    static_assert(sizeof(scalar_t) == 2, "for bf16");
    const auto q = static_cast<const scalar_t*>(Q), k = static_cast<const scalar_t*>(K), v = static_cast<const scalar_t*>(V);
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(Q) | reinterpret_cast<uintptr_t>(K) |
                                reinterpret_cast<uintptr_t>(V) | reinterpret_cast<uintptr_t>(output);
    if (batch_size * heads <= 0 || seq_len <= 0 || head_size <= 0) return;
    if (head_size % 8 == 0 && addresses % 16 == 0) {
        dispatch<true>(static_cast<scalar_t*>(output), q, k, v, batch_size * heads, seq_len, head_size);
    } else {
        dispatch<false>(static_cast<scalar_t*>(output), q, k, v, batch_size * heads, seq_len, head_size);
    }
}
