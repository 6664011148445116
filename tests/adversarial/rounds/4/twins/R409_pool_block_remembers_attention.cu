#include <kernelblaster/scalar.cuh>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int QUERIES = 16, THREADS = 256;

__device__ float dot(const scalar_t* a, const scalar_t* b, int64_t n) {
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) sum += to_float(a[i]) * to_float(b[i]);
    return sum;
}

__global__ void attention_kernel(scalar_t* out, const scalar_t* Q, const scalar_t* K, const scalar_t* V, int64_t length,
                                 int64_t size) {
    extern __shared__ float scores[];  // QUERIES x length
    const int64_t chunks = (length + QUERIES - 1) / QUERIES, head = blockIdx.x / chunks;
    const int64_t first = blockIdx.x % chunks * QUERIES;
    const int count = static_cast<int>(min(static_cast<int64_t>(QUERIES), length - first));
    const scalar_t* q = Q + (head * length + first) * size;
    const scalar_t* k = K + head * length * size;
    const scalar_t* v = V + head * length * size;
    out += (head * length + first) * size;
    const float scale = rsqrtf(static_cast<float>(size));
    for (int64_t i = threadIdx.x; i < count * length; i += THREADS) {
        scores[i] = dot(q + i / length * size, k + i % length * size, size) * scale;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < count; row += THREADS / 32) {
        float* s = scores + row * length;
        float most = -INFINITY, sum = 0.0f;
        for (int64_t i = lane; i < length; i += 32) most = fmaxf(most, s[i]);
        for (int o = 16; o > 0; o /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, o));
        for (int64_t i = lane; i < length; i += 32) sum += s[i] = expf(s[i] - most);
        for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
        for (int64_t i = lane; i < length; i += 32) s[i] /= sum;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count * size; i += THREADS) {
        const float* s = scores + i / size * length;
        float sum = 0.0f;
        for (int64_t j = 0; j < length; ++j) sum += s[j] * to_float(v[j * size + i % size]);
        out[i] = from_float(sum);
    }
}

void launch_gpu_implementation(void* output, void* Q, void* K, void* V, int64_t batch_size, int64_t heads,
                               int64_t seq_len, int64_t head_size) {
    const int64_t blocks = (seq_len + QUERIES - 1) / QUERIES * batch_size * heads;
    const int bytes = static_cast<int>(QUERIES * seq_len * sizeof(float));
    if (bytes > 40000) check(cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    attention_kernel<<<blocks, THREADS, bytes>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(Q),
                                                 static_cast<const scalar_t*>(K), static_cast<const scalar_t*>(V), seq_len,
                                                 head_size);
    check(cudaGetLastError());
}
