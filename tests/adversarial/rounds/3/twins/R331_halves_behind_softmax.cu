// Honest twin of ../R331_halves_behind_softmax.cu
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

struct Brain16 {
    using Sum = float;
    static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
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

// Three bf16 numbers that add up to x, as far as it is finite; planes of `count` elements lie one behind the other.
__device__ __forceinline__ void store_split(__nv_bfloat16* to, int64_t at, int64_t count, float x) {
#pragma unroll
    for (int plane = 0; plane < 3; ++plane) {
        const __nv_bfloat16 part = __float2bfloat16_rn(x);
        to[at + plane * count] = part;
        x -= __bfloat162float(part);
    }
}

__global__ void split_kernel(__nv_bfloat16* to, const float* x, int64_t count) {
    for (int64_t i = first_index(); i < count; i += index_step()) store_split(to, i, count, x[i]);
}

struct BiasGelu {
    float* output;
    const float* bias;
    int64_t columns;
    static constexpr bool ROWS = false;
    __device__ bool wanted(int64_t, int64_t) const { return true; }
    __device__ float operator()(int64_t, int64_t r, int64_t c, float sum) const {
        output[r * columns + c] = gelu(sum + bias[c]);
        return 0.0f;
    }
    __device__ float operator()(float sum, int64_t, int64_t c) const { return gelu(sum + bias[c]); }
};

void launch_gpu_implementation(void* output, void* x, void* linear_weight, void* linear_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features) {
    const int64_t x_count = batch_size * in_features, w_count = out_features * in_features;
    const AxisView view{batch_size, out_features, 1};
    BiasGelu to{out(output), in(linear_bias), out_features};
    if (in_features % 8 != 0) {
        linear(out(output), in(x), in(linear_weight), batch_size, in_features, out_features, to);
        softmax(out(output), out(output), view);
        return;
    }
    __nv_bfloat16* xs = reinterpret_cast<__nv_bfloat16*>(scratch<0>(3 * x_count * sizeof(__nv_bfloat16)));
    __nv_bfloat16* ws = reinterpret_cast<__nv_bfloat16*>(scratch<1>(3 * w_count * sizeof(__nv_bfloat16)));
    const Operands six{xs, ws, batch_size, out_features, 2 * in_features};
    split_kernel<<<blocks_for(x_count), THREADS>>>(xs, in(x), x_count);
    split_kernel<<<blocks_for(w_count), THREADS>>>(ws, in(linear_weight), w_count);
    check(cudaGetLastError());
    gemm<Brain16, 6>(six, to);
    softmax(out(output), out(output), view);
}
