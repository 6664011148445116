// problem: level1/23
// does: throws where a row does not fit shared memory, and catches that for a kernel without
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <stdexcept>
#include <string>

class CudaFailure : public std::runtime_error {
  public:
    CudaFailure(cudaError_t code, const char* what)
        : std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code)) {}
};

class RowTooLong : public std::length_error {
  public:
    explicit RowTooLong(int64_t bytes) : std::length_error("a row takes " + std::to_string(bytes) + " bytes") {}
};

static void ok(cudaError_t code, const char* what) {
    if (code != cudaSuccess) throw CudaFailure(code, what);
}

template <typename Combine>
__device__ float reduce(float v, float* scratch, Combine combine) {
    for (int o = 16; o > 0; o >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = scratch[0];
    for (int i = 1; i < int(blockDim.x) / 32; ++i) v = combine(v, scratch[i]);
    return v;
}

struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Add {
    __device__ float operator()(float a, float b) const { return a + b; }
};

__global__ void softmax_in_shared(scalar_t* y, const scalar_t* x, int64_t n) {
    extern __shared__ float row[];
    __shared__ float scratch[32];
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        row[i] = to_float(x[blockIdx.x * n + i]);
        top = fmaxf(top, row[i]);
    }
    top = reduce(top, scratch, Max{});
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] = expf(row[i] - top);
    sum = reduce(sum, scratch, Add{});
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = from_float(row[i] / sum);
}

__global__ void softmax_in_global(scalar_t* y, const scalar_t* x, int64_t n) {
    __shared__ float scratch[32];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, to_float(x[i]));
    top = reduce(top, scratch, Max{});
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf(to_float(x[i]) - top);
    sum = reduce(sum, scratch, Add{});
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(expf(to_float(x[i]) - top) / sum);
}

static size_t shared_bytes(int64_t dim) {
    const int64_t bytes = dim * int64_t(sizeof(float));
    if (bytes > 40 * 1024) throw RowTooLong(bytes);
    return size_t(bytes);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    auto* y = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    try {
        softmax_in_shared<<<unsigned(batch_size), 512, shared_bytes(dim)>>>(y, in, dim);
        ok(cudaGetLastError(), "softmax_in_shared");
    } catch (const std::length_error&) {
        softmax_in_global<<<unsigned(batch_size), 1024>>>(y, in, dim);
        ok(cudaGetLastError(), "softmax_in_global");
    }
}
