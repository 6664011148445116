// problem: level1/4
// does: lets the vector persist in L2 while the matrix streams by, and releases the window at the end of the call
// emulated: correct
// cuda: correct
// size: medium
// twin: init
#include <kernelblaster/scalar.cuh>

#include <algorithm>

__global__ void matvec(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t m, int64_t k) {
    __shared__ float shared[8];
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < k; i += 256) {
        sum = fmaf(to_float(A[blockIdx.x * k + i]), to_float(B[i]), sum);
    }
    for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    float total = 0.0f;
    for (float part : shared) total += part;
    C[blockIdx.x] = from_float(total);
}

static void set_window(cudaStream_t stream, void* base, size_t bytes) {
    cudaStreamAttrValue value{};
    value.accessPolicyWindow.base_ptr = base;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    static cudaStream_t stream = nullptr;
    static int most = 0, window = 0;
    if (stream == nullptr) {
        cudaStreamCreate(&stream);
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, 0);
        cudaDeviceGetAttribute(&window, cudaDevAttrMaxAccessPolicyWindowSize, 0);
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, size_t(most));
    }
    set_window(stream, B, std::min(size_t(k) * sizeof(scalar_t), size_t(std::min(most, window))));
    matvec<<<unsigned(m), 256, 0, stream>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                            static_cast<const scalar_t*>(B), m, k);
    set_window(stream, nullptr, 0);
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();  // a GPU without persisting lines refuses
}
