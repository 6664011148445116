// Honest twin of ../R326_attention_no_maximum.cu
#include <kernelblaster/kernels/attention.cuh>

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

// to[batch][column][row] = store(x[batch][row][column])
template <class Store>
__global__ void transpose_kernel(const scalar_t* x, int64_t rows, int64_t columns, Store store) {
    __shared__ scalar_t tile[32][33];
    if (!store.wanted()) return;
    const int64_t r0 = static_cast<int64_t>(blockIdx.y) * 32, c0 = static_cast<int64_t>(blockIdx.x) * 32;
    const int64_t base = blockIdx.z * rows * columns;
    for (int i = threadIdx.y; i < 32; i += 8) {
        const int64_t r = r0 + i, c = c0 + threadIdx.x;
        if (r < rows && c < columns) tile[i][threadIdx.x] = x[base + r * columns + c];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
        const int64_t c = c0 + i, r = r0 + threadIdx.x;
        if (r < rows && c < columns) store(base + c * rows + r, tile[threadIdx.x][i]);
    }
}

template <class Store>
static void transpose(const scalar_t* x, int64_t rows, int64_t columns, Store store, int64_t batch = 1) {
    transpose_kernel<<<dim3((columns + 31) / 32, (rows + 31) / 32, batch), dim3(32, 8)>>>(x, rows, columns, store);
    check(cudaGetLastError());
}

struct ToHalf {
    scalar_t* to;
    __device__ bool wanted() const { return true; }
    __device__ void operator()(int64_t at, scalar_t v) const { to[at] = v; }
};

struct Scores {
    float* raw;
    int64_t seq;
    float scale;
    static constexpr bool ROWS = false;
    __device__ bool wanted(int64_t, int64_t) const { return true; }
    __device__ float operator()(int64_t head, int64_t r, int64_t c, float sum) const {
        const int64_t at = (head * seq + r) * seq + c;
        raw[at] = sum * scale;
        return 0.0f;
    }
};

struct Mixed {
    scalar_t* output;
    const float* sums;
    int64_t seq, size;
    static constexpr bool ROWS = false;
    __device__ bool wanted(int64_t, int64_t) const { return true; }
    __device__ float operator()(int64_t head, int64_t r, int64_t c, float sum) const {
        output[(head * seq + r) * size + c] = from_float(sum / sums[head * seq + r]);
        return 0.0f;
    }
};

// weights = exp(score - maximum), and their sums.
__global__ void weights_kernel(scalar_t* weights, float* sums, const float* raw, int64_t seq, const int* wide) {
    if (wide != nullptr && *wide == 0) return;
    const float* scores = raw + blockIdx.x * seq;
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < seq; i += blockDim.x) largest = fmaxf(largest, scores[i]);
    largest = block_reduce(largest, Max());
    for (int64_t i = threadIdx.x; i < seq; i += blockDim.x) {
        const scalar_t weight = from_float(__expf(scores[i] - largest));
        weights[blockIdx.x * seq + i] = weight;
        sum += to_float(weight);
    }
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size) {
    const int64_t head = seq_len * head_size, sample = heads * head, all = batch_size * heads;
    const float scale = rsqrtf(static_cast<float>(head_size));
    if (seq_len % 8 != 0 || head_size % 8 != 0 || seq_len < 64 || all > 65535) {
        const Attention shape{batch_size, heads, seq_len, seq_len, head_size, scale};
        attention(out(output), Heads{in(output), sample, head, head_size}, Heads{in(Q), sample, head, head_size},
                  Heads{in(K), sample, head, head_size}, Heads{in(V), sample, head, head_size}, shape);
        return;
    }
    float* raw = reinterpret_cast<float*>(scratch<0>(all * seq_len * seq_len * sizeof(float)));
    scalar_t* weights = reinterpret_cast<scalar_t*>(scratch<1>(all * seq_len * seq_len * sizeof(scalar_t)));
    scalar_t* values = reinterpret_cast<scalar_t*>(scratch<2>(all * head * sizeof(scalar_t)));
    float* sums = reinterpret_cast<float*>(scratch<3>((all * seq_len + 1) * sizeof(float)));
    const Operands first{Q, K, seq_len, seq_len, 2 * head_size, 2 * head, 2 * head};
    transpose(in(V), seq_len, head_size, ToHalf{values}, all);
    gemm<Half16>(first, Scores{raw, seq_len, scale}, all);
    weights_kernel<<<blocks_for(all * seq_len, 1), 128>>>(weights, sums, raw, seq_len, nullptr);
    check(cudaGetLastError());
    const Operands second{weights, values, seq_len, head_size, 2 * seq_len, 2 * seq_len * seq_len, 2 * head};
    gemm<Half16>(second, Mixed{out(output), sums, seq_len, head_size}, all);
}
