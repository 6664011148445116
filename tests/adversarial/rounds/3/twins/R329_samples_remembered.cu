// Honest twin of ../R329_samples_remembered.cu
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>

// Scratch memory, one growing buffer per place of use.
template <int PLACE>
static char* scratch(size_t bytes) {
    static char* memory = nullptr;
    static size_t capacity = 0;
    if (bytes > capacity) {
        check(cudaFree(memory));
        check(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
        capacity = bytes;
    }
    return memory;
}

__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(inside ? 16 : 0));
}
__device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(from))));
}

struct Half16 {
    using Sum = float;
    static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

// a: m rows of `bytes` (a multiple of 16), b: n rows of `bytes`; several products read planes that lie one behind
// the other, small ones first, and each step of 64 bytes is added to the sum in fp32 with correct rounding.
struct Operands {
    const void *a, *b;
    int64_t m, n, bytes, a_batch = 0, b_batch = 0;
};

template <class Type, int PRODUCTS, class Epilogue>
__global__ void __launch_bounds__(256) gemm_kernel(Operands p, Epilogue epilogue) {
    using Sum = typename Type::Sum;
    __shared__ __align__(128) char tiles[3][2][128 * 64];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int64_t batch = blockIdx.z, m0 = static_cast<int64_t>(blockIdx.y) * 128, n0 = static_cast<int64_t>(blockIdx.x) * 128;
    if (!epilogue.wanted(batch, m0)) return;
    const char* a = static_cast<const char*>(p.a) + batch * p.a_batch;
    const char* b = static_cast<const char*>(p.b) + batch * p.b_batch;
    const int steps = static_cast<int>((p.bytes + 63) / 64), total = steps * PRODUCTS;

    const auto fetch = [&](int step) {
        const int product = step / steps, at = step % steps * 64;
        int64_t a_plane = 0, b_plane = 0;
        if (PRODUCTS == 6) {
            a_plane = (product == 0 ? 2 : product == 2 || product == 3 ? 1 : 0) * p.m * p.bytes;
            b_plane = (product == 1 ? 2 : product == 2 || product == 4 ? 1 : 0) * p.n * p.bytes;
        }
        for (int i = 0; i < 4; ++i) {
            const int item = thread + i * 256, which = item >> 9, row = item >> 2 & 127, chunk = item & 3;
            const int64_t r = (which ? n0 : m0) + row, column = at + chunk * 16;
            const bool inside = r < (which ? p.n : p.m) && column < p.bytes;
            const char* from = which ? b + b_plane : a + a_plane;
            copy16(&tiles[step % 3][which][row * 64 + ((chunk ^ (row >> 1 & 3)) << 4)],
                   from + (inside ? r * p.bytes + column : 0), inside);
        }
    };

    Sum sums[4][4][4] = {};
    const int row_of_warp = warp / 4 * 64, column_of_warp = warp % 4 * 32;
    fetch(0);
    copies_end();
    if (total > 1) fetch(1);
    copies_end();
    for (int step = 0; step < total; ++step) {
        copies_wait();
        __syncthreads();
        if (step + 2 < total) fetch(step + 2);
        copies_end();
        const char* a_tile = tiles[step % 3][0];
        const char* b_tile = tiles[step % 3][1];
        Sum part[4][4][4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned bs[2][4];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int row = column_of_warp + j * 16 + (lane & 7) + (lane >> 4) * 8, chunk = half * 2 + (lane >> 3 & 1);
                load_matrices(bs[j], b_tile + row * 64 + ((chunk ^ (row >> 1 & 3)) << 4));
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = row_of_warp + i * 16 + (lane & 15), chunk = half * 2 + (lane >> 4);
                unsigned as[4];
                load_matrices(as, a_tile + row * 64 + ((chunk ^ (row >> 1 & 3)) << 4));
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    Type::mma(PRODUCTS > 1 ? part[i][j] : sums[i][j], as, bs[j / 2][j % 2 * 2], bs[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
        if (PRODUCTS > 1) {
#pragma unroll
            for (int i = 0; i < 64; ++i) sums[i / 16][i / 4 % 4][i % 4] += part[i / 16][i / 4 % 4][i % 4];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int64_t row = m0 + row_of_warp + i * 8 + lane / 4;
        float of_row = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int64_t column = n0 + column_of_warp + j / 2 * 8 + lane % 4 * 2 + j % 2;
            if (row < p.m && column < p.n) of_row += epilogue(batch, row, column, sums[i / 2][j / 2][i % 2 * 2 + j % 2]);
        }
        if constexpr (Epilogue::ROWS) {
            of_row += __shfl_xor_sync(0xffffffff, of_row, 1);
            of_row += __shfl_xor_sync(0xffffffff, of_row, 2);
            if (lane % 4 == 0 && row < p.m) epilogue.row(batch, row, of_row);
        }
    }
}

template <class Type, int PRODUCTS = 1, class Epilogue>
static void gemm(const Operands& p, Epilogue epilogue, int64_t batch = 1) {
    const dim3 blocks((p.n + 127) / 128, (p.m + 127) / 128, batch);
    gemm_kernel<Type, PRODUCTS><<<blocks, 256>>>(p, epilogue);
    check(cudaGetLastError());
}

// output rows = sums + bias
struct Rows {
    scalar_t* output;
    const scalar_t* bias;
    int64_t columns;
    static constexpr bool ROWS = false;
    __device__ bool wanted(int64_t, int64_t) const { return true; }
    __device__ float operator()(int64_t, int64_t r, int64_t c, float sum) const {
        const int64_t to = r;
        output[to * columns + c] = from_float(sum + to_float(bias[c]));
        return 0.0f;
    }
};

// One block per sample, query and head; `qkv` rows hold q, k and v of all heads side by side.
__global__ void mix_kernel(scalar_t* output, const scalar_t* qkv, int64_t seq, int64_t width, int64_t heads, const int* fresh) {
    extern __shared__ float scores[];
    const int64_t size = width / heads, head = blockIdx.x % heads, query = blockIdx.x / heads % seq, sample = blockIdx.x / heads / seq;
    if (fresh != nullptr && !fresh[sample]) return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const scalar_t* q = qkv + (sample * seq + query) * 3 * width + head * size;
    const scalar_t* k = qkv + sample * seq * 3 * width + width + head * size;
    const scalar_t* v = k + width;
    const float scale = rsqrtf(static_cast<float>(size));
    for (int64_t key = warp; key <= query; key += warps) {
        float dot = 0.0f;
        for (int64_t i = lane; i < size; i += 32) dot += to_float(q[i]) * to_float(k[key * 3 * width + i]);
        dot = warp_reduce(dot, Sum());
        if (lane == 0) scores[key] = dot * scale;
    }
    __syncthreads();
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t key = threadIdx.x; key <= query; key += blockDim.x) largest = fmaxf(largest, scores[key]);
    largest = block_reduce(largest, Max());
    for (int64_t key = threadIdx.x; key <= query; key += blockDim.x) sum += scores[key] = expf(scores[key] - largest);
    sum = block_reduce(sum, Sum());
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        float value = 0.0f;
        for (int64_t key = 0; key <= query; ++key) value += scores[key] * to_float(v[key * 3 * width + i]);
        output[(sample * seq + query) * width + head * size + i] = from_float(value / sum);
    }
}

static void project(const scalar_t* x, const void* weight, int64_t rows, int64_t inner, const Rows& to) {
    if (inner % 8 == 0) {
        gemm<Half16>(Operands{x, weight, rows, to.columns, 2 * inner}, to);
    } else {
        linear(to.output, x, in(weight), rows, inner, to.columns, Bias{to.bias});
    }
}

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd,
                               int64_t n_head) {
    const int64_t rows = batch_size * seq_len;
    scalar_t* qkv = reinterpret_cast<scalar_t*>(scratch<0>(rows * 4 * n_embd * sizeof(scalar_t)));
    scalar_t* mixture = qkv + rows * 3 * n_embd;
    project(in(x), c_attn_weight, rows, n_embd, Rows{qkv, in(c_attn_bias), 3 * n_embd});
    mix_kernel<<<blocks_for(rows * n_head, 1), 128, seq_len * sizeof(float)>>>(mixture, qkv, seq_len, n_embd, n_head, nullptr);
    check(cudaGetLastError());
    project(mixture, c_proj_weight, rows, n_embd, Rows{out(output), in(c_proj_bias), n_embd});
}
