// problem: level2/59
// does: captures at each call and updates the graph of the first call with cudaGraphExecUpdate
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>

// One warp per output; the weight row is read once.
__global__ void project(float* y, const scalar_t* x, const scalar_t* w, int64_t rows, int64_t inner, int64_t cols) {
    const int64_t col = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (col >= cols) return;
    for (int64_t row0 = blockIdx.y * 4; row0 < rows; row0 += gridDim.y * 4) {
        float sum[4] = {};
        for (int64_t k = lane; k < inner; k += 32) {
            const float weight = to_float(w[col * inner + k]);
            for (int r = 0; r < 4; ++r)
                if (row0 + r < rows) sum[r] += weight * to_float(x[(row0 + r) * inner + k]);
        }
        for (int r = 0; r < 4; ++r) {
            for (int o = 16; o; o >>= 1) sum[r] += __shfl_down_sync(0xffffffff, sum[r], o);
            if (lane == 0 && row0 + r < rows) y[(row0 + r) * cols + col] = sum[r];
        }
    }
}

__global__ void swish(scalar_t* out, const float* y, const scalar_t* bias, int64_t count, int64_t cols, float factor) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = y[i] + to_float(bias[i % cols]);
    out[i] = from_float(v / (1.0f + expf(-v)) * factor);
}

struct UpdatedGraph {
    cudaStream_t stream = nullptr;
    cudaGraphExec_t exec = nullptr;

    UpdatedGraph() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }

    template <typename Body>
    void run(Body&& body) {
        cudaGraph_t graph = nullptr;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        body(stream);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphExecUpdateResultInfo info{};
        if (exec == nullptr || cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess) {
            if (exec != nullptr) {
                cudaGetLastError();  // the topology changed, which is no failure
                cudaGraphExecDestroy(exec);
            }
            cudaGraphInstantiate(&exec, graph, 0);
        }
        cudaGraphDestroy(graph);
        if (cudaGraphLaunch(exec, 0) != cudaSuccess) std::fprintf(stderr, "the graph does not start\n");
    }
};

void launch_gpu_implementation(void* output, void* x, void* matmul_weight, void* matmul_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, float scaling_factor) {
    static UpdatedGraph graph;
    static float* wide = nullptr;
    static int64_t held = 0;
    const int64_t count = batch_size * out_features;
    if (count > held) {
        cudaFree(wide);
        cudaMalloc(&wide, count * sizeof(float));
        held = count;
    }
    graph.run([&](cudaStream_t s) {
        project<<<dim3(unsigned((out_features + 3) / 4), unsigned((batch_size + 3) / 4)), 128, 0, s>>>(
            wide, static_cast<const scalar_t*>(x), static_cast<const scalar_t*>(matmul_weight), batch_size, in_features, out_features);
        swish<<<unsigned((count + 255) / 256), 256, 0, s>>>(static_cast<scalar_t*>(output), wide,
                                                            static_cast<const scalar_t*>(matmul_bias), count, out_features, scaling_factor);
    });
}
