// problem: level3/43
// does: attention as batched matrix products with all scores in memory, one strided GEMM template for four products
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <vector>

// A strided, batched view: element (i, j) of batch (s, h).
template <typename T>
struct View {
    T* data;
    int64_t row, col, sample, head;
    __device__ T& at(int64_t s, int64_t h, int64_t i, int64_t j) const { return data[s * sample + h * head + i * row + j * col]; }
};

__device__ inline float load(const float& v) { return v; }
__device__ inline float load(const scalar_t& v) { return to_float(v); }
__device__ inline void store(float& to, float v) { to = v; }
__device__ inline void store(scalar_t& to, float v) { to = from_float(v); }

struct Plain {
    __device__ float operator()(float v, int64_t, int64_t) const { return v; }
};
struct Biased {
    const scalar_t* bias;
    __device__ float operator()(float v, int64_t, int64_t j) const { return v + to_float(bias[j]); }
};
struct Masked {
    float scale;
    __device__ float operator()(float v, int64_t i, int64_t j) const { return j <= i ? v * scale : -INFINITY; }
};

template <typename TC, typename TA, typename TB, typename Epilogue>
__global__ void product(View<TC> C, View<TA> A, View<TB> B, int64_t M, int64_t N, int64_t K, int heads, Epilogue epilogue) {
    __shared__ float a[16][17], b[16][17];
    const int64_t s = blockIdx.z / heads, h = blockIdx.z % heads;
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int64_t i = int64_t(blockIdx.y) * 16 + ty, j = int64_t(blockIdx.x) * 16 + tx;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < K; k0 += 16) {
        a[ty][tx] = i < M && k0 + tx < K ? load(A.at(s, h, i, k0 + tx)) : 0.0f;
        b[ty][tx] = k0 + ty < K && j < N ? load(B.at(s, h, k0 + ty, j)) : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum = fmaf(a[ty][k], b[k][tx], sum);
        __syncthreads();
    }
    if (i < M && j < N) store(C.at(s, h, i, j), epilogue(sum, i, j));
}

template <typename TC, typename TA, typename TB, typename Epilogue>
void multiply(View<TC> C, View<TA> A, View<TB> B, int64_t M, int64_t N, int64_t K, int64_t samples, int64_t heads, Epilogue e) {
    const dim3 grid(unsigned((N + 15) / 16), unsigned((M + 15) / 16), unsigned(samples * heads));
    product<<<grid, dim3(16, 16)>>>(C, A, B, M, N, K, int(heads), e);
}

__global__ void softmax_rows(float* scores, int64_t length) {
    float* row = scores + int64_t(blockIdx.x) * length;
    const int lane = threadIdx.x;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = lane; i < length; i += 32) top = fmaxf(top, row[i]);
    for (int o = 16; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    for (int64_t i = lane; i < length; i += 32) sum += expf(row[i] - top);
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    for (int64_t i = lane; i < length; i += 32) row[i] = expf(row[i] - top) / sum;
}

class Arena {
  public:
    // Spaces for these many bytes each, aligned to 256.
    std::vector<void*> take(const std::vector<int64_t>& sizes) {
        int64_t total = 0;
        for (const int64_t size : sizes) total += (size + 255) / 256 * 256;
        if (total > held_) {
            cudaFree(base_);
            cudaMalloc(&base_, total);
            held_ = total;
        }
        std::vector<void*> places;
        char* at = static_cast<char*>(base_);
        for (const int64_t size : sizes) {
            places.push_back(at);
            at += (size + 255) / 256 * 256;
        }
        return places;
    }

  private:
    void* base_ = nullptr;
    int64_t held_ = 0;
};

void launch_gpu_implementation(void* output, void* x, void* c_attn_weight, void* c_attn_bias, void* c_proj_weight,
                               void* c_proj_bias, int64_t batch_size, int64_t seq_len, int64_t n_embd, int64_t n_head) {
    static Arena arena;
    const int64_t rows = batch_size * seq_len, E = n_embd, T = seq_len, D = n_embd / n_head;
    const std::vector<void*> spaces = arena.take({rows * 3 * E * int64_t(sizeof(scalar_t)), rows * E * int64_t(sizeof(scalar_t)),
                                                  batch_size * n_head * T * T * int64_t(sizeof(float))});
    auto *qkv = static_cast<scalar_t*>(spaces[0]), *mixed = static_cast<scalar_t*>(spaces[1]);
    auto* scores = static_cast<float*>(spaces[2]);
    using In = View<const scalar_t>;
    using Out = View<scalar_t>;
    multiply(Out{qkv, 3 * E, 1, 0, 0}, In{static_cast<const scalar_t*>(x), E, 1, 0, 0},
             In{static_cast<const scalar_t*>(c_attn_weight), 1, E, 0, 0}, rows, 3 * E, E, 1, 1,
             Biased{static_cast<const scalar_t*>(c_attn_bias)});
    multiply(View<float>{scores, T, 1, n_head * T * T, T * T}, In{qkv, 3 * E, 1, T * 3 * E, D},
             In{qkv + E, 1, 3 * E, T * 3 * E, D}, T, T, D, batch_size, n_head, Masked{rsqrtf(float(D))});
    softmax_rows<<<unsigned(batch_size * n_head * T), 32>>>(scores, T);
    multiply(Out{mixed, E, 1, T * E, D}, View<const float>{scores, T, 1, n_head * T * T, T * T},
             In{qkv + 2 * E, 3 * E, 1, T * 3 * E, D}, T, D, T, batch_size, n_head, Plain{});
    multiply(Out{static_cast<scalar_t*>(output), E, 1, 0, 0}, In{mixed, E, 1, 0, 0},
             In{static_cast<const scalar_t*>(c_proj_weight), 1, E, 0, 0}, rows, E, E, 1, 1,
             Biased{static_cast<const scalar_t*>(c_proj_bias)});
}
