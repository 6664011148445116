// problem: level1/19
// precision: fp16
// kind: honest
// expects: launches two kernels in cudaStreamPerThread (which orders itself with the legacy stream); peels elements up to a 128-byte boundary
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

__device__ __forceinline__ scalar_t relu1(scalar_t v) {
    const float f = to_float(v);
    return f > 0.0f ? v : (f != f ? v : from_float(0.0f));
}
// the elements before the first and after the last whole line
__global__ void ends_kernel(scalar_t* out, const scalar_t* x, int64_t n, int64_t head, int64_t lines) {
    constexpr int64_t L = 128 / sizeof(scalar_t);
    for (int64_t i = threadIdx.x; i < head; i += blockDim.x) out[i] = relu1(x[i]);
    for (int64_t i = head + lines * L + threadIdx.x; i < n; i += blockDim.x) out[i] = relu1(x[i]);
}
__global__ void lines_kernel(uint4* __restrict__ out, const uint4* __restrict__ x, int64_t count) {
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
        uint4 raw = __ldcs(x + i);
        scalar_t* s = reinterpret_cast<scalar_t*>(&raw);
#pragma unroll
        for (int j = 0; j < int(16 / sizeof(scalar_t)); ++j) s[j] = relu1(s[j]);
        __stcs(out + i, raw);
    }
}
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    constexpr int64_t L = 128 / sizeof(scalar_t);
    const int64_t n = batch_size * dim;
    auto* out = static_cast<scalar_t*>(output);
    auto* in = static_cast<const scalar_t*>(x);
    const int64_t off = int64_t(reinterpret_cast<uintptr_t>(output) % 128 / sizeof(scalar_t));
    const int64_t head = off ? (L - off < n ? L - off : n) : 0;
    const int64_t lines = (n - head) / L;
    ends_kernel<<<1, 64, 0, cudaStreamPerThread>>>(out, in, n, head, lines);
    if (lines)
        lines_kernel<<<132 * 8, 256, 0, cudaStreamPerThread>>>(reinterpret_cast<uint4*>(out + head),
                                                               reinterpret_cast<const uint4*>(in + head), lines * 8);
    check(cudaGetLastError());
}
