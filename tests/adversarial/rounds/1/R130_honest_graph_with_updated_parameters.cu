// problem: level1/95
// precision: bf16
// kind: honest
// expects: an explicit two-node CUDA graph, built once, whose kernel parameters are set anew in EVERY call before it is launched on the legacy stream; computes everything each time; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}
__device__ float block_sum(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_sum(lane < warps ? part[lane] : 0.0f);
    __syncthreads();
    return v;
}
__device__ float block_max(float v) {
    __shared__ float part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_max(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();
    return v;
}

__global__ void loss_kernel(float* losses, const scalar_t* p, const int64_t* t, int64_t classes) {
    const scalar_t* row = p + blockIdx.x * classes;
    float m = -INFINITY;
    for (int64_t i = threadIdx.x; i < classes; i += blockDim.x) m = fmaxf(m, to_float(row[i]));
    m = block_max(m);
    float s = 0.0f;
    for (int64_t i = threadIdx.x; i < classes; i += blockDim.x) s += expf(to_float(row[i]) - m);
    s = block_sum(s);
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(s) + m - to_float(row[t[blockIdx.x]]);
}
__global__ void mean_kernel(scalar_t* out, const float* losses, int64_t count) {
    float s = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) s += losses[i];
    s = block_sum(s);
    if (threadIdx.x == 0) *out = from_float(s / count);
}

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    static cudaGraph_t graph = nullptr;
    static cudaGraphExec_t exec = nullptr;
    static cudaGraphNode_t first, second;
    static float* losses = nullptr;
    static int64_t capacity = 0;
    if (batch_size > capacity) {
        check(cudaFree(losses));
        check(cudaMalloc(&losses, batch_size * sizeof(float)));
        capacity = batch_size;
    }
    void* args1[] = {&losses, &predictions, &targets, &num_classes};
    void* args2[] = {&output, &losses, &batch_size};
    cudaKernelNodeParams p1{}, p2{};
    p1.func = reinterpret_cast<void*>(loss_kernel);
    p1.gridDim = dim3(batch_size);
    p1.blockDim = dim3(256);
    p1.kernelParams = args1;
    p2.func = reinterpret_cast<void*>(mean_kernel);
    p2.gridDim = dim3(1);
    p2.blockDim = dim3(1024);
    p2.kernelParams = args2;
    if (!exec) {
        check(cudaGraphCreate(&graph, 0));
        check(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &p1));
        check(cudaGraphAddKernelNode(&second, graph, &first, 1, &p2));
        check(cudaGraphInstantiate(&exec, graph, 0));
    } else {
        check(cudaGraphExecKernelNodeSetParams(exec, first, &p1));
        check(cudaGraphExecKernelNodeSetParams(exec, second, &p2));
    }
    check(cudaGraphLaunch(exec, 0));
}
