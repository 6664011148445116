// problem: level1/23
// does: captures its kernels in a graph, replays it, and captures again when a pointer or a size changes
// emulated: correct not_emulatable
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

template <bool kMax>
__device__ float combine(float a, float b) {
    return kMax ? fmaxf(a, b) : a + b;
}

template <bool kMax>
__device__ float block_reduce(float value) {
    __shared__ float partial[32];
    for (int o = 16; o > 0; o /= 2) value = combine<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : (kMax ? -INFINITY : 0.0f);
    for (int o = 16; o > 0; o /= 2) value = combine<kMax>(value, __shfl_xor_sync(0xffffffffu, value, o));
    return value;
}

__global__ void softmax(scalar_t* y, const scalar_t* x, int64_t n) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, to_float(x[i]));
    top = block_reduce<true>(top);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += expf(to_float(x[i]) - top);
    sum = block_reduce<false>(sum);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float(expf(to_float(x[i]) - top) / sum);
}

struct Replay {
    cudaStream_t stream = nullptr;
    cudaGraphExec_t graph = nullptr;
    void* output = nullptr;
    void* x = nullptr;
    int64_t rows = 0, n = 0;
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    static Replay r;
    if (r.stream == nullptr) cudaStreamCreate(&r.stream);
    if (r.graph == nullptr || r.output != output || r.x != x || r.rows != batch_size || r.n != dim) {
        cudaGraph_t captured;
        cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal);
        softmax<<<unsigned(batch_size), 512, 0, r.stream>>>(static_cast<scalar_t*>(output),
                                                            static_cast<const scalar_t*>(x), dim);
        cudaStreamEndCapture(r.stream, &captured);
        if (r.graph != nullptr) cudaGraphExecDestroy(r.graph);
        cudaGraphInstantiate(&r.graph, captured, 0);
        cudaGraphDestroy(captured);
        r.output = output, r.x = x, r.rows = batch_size, r.n = dim;
    }
    cudaGraphLaunch(r.graph, 0);
}
