// problem: level1/36
// does: builds a graph of one kernel node by hand, and sets the node's parameters before each launch
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

__global__ void rms(scalar_t* y, const scalar_t* x, int64_t count, int64_t channels, int64_t pixels, float eps) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int64_t base = i / pixels * channels * pixels + i % pixels;
    float squares = 0.0f;
    for (int64_t c = 0; c < channels; ++c) {
        const float v = to_float(x[base + c * pixels]);
        squares += v * v;
    }
    const float inverse = 1.0f / sqrtf(squares / float(channels) + eps);
    for (int64_t c = 0; c < channels; ++c) y[base + c * pixels] = from_float(to_float(x[base + c * pixels]) * inverse);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t features, int64_t dim1,
                               int64_t dim2, float eps) {
    static cudaGraph_t graph = nullptr;
    static cudaGraphNode_t node = nullptr;
    static cudaGraphExec_t exec = nullptr;

    scalar_t* y = static_cast<scalar_t*>(output);
    const scalar_t* in = static_cast<const scalar_t*>(x);
    int64_t pixels = dim1 * dim2, count = batch_size * pixels;
    void* arguments[] = {&y, &in, &count, &features, &pixels, &eps};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(rms);
    params.gridDim = dim3(unsigned((count + 255) / 256));
    params.blockDim = dim3(256);
    params.kernelParams = arguments;
    if (exec == nullptr) {
        cudaGraphCreate(&graph, 0);
        cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
        cudaGraphInstantiate(&exec, graph, 0);
    } else {
        cudaGraphExecKernelNodeSetParams(exec, node, &params);
    }
    cudaGraphLaunch(exec, cudaStreamLegacy);
}
