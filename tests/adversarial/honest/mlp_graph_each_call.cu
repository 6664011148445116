// problem: level3/1
// does: captures its three layers in a graph at each call, launches it on the default stream and destroys it
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

constexpr int TILE = 32, DEEP = 16;

template <bool kRelu>
__global__ __launch_bounds__(256) void dense(scalar_t* y, const scalar_t* x, const scalar_t* w, const scalar_t* b,
                                             int64_t M, int64_t K, int64_t N) {
    __shared__ float left[DEEP][TILE + 1], right[DEEP][TILE + 1];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const int64_t m0 = int64_t(blockIdx.y) * TILE, n0 = int64_t(blockIdx.x) * TILE;
    float c00 = 0, c01 = 0, c10 = 0, c11 = 0;
    for (int64_t k0 = 0; k0 < K; k0 += DEEP) {
        for (int row = t / DEEP; row < TILE; row += 256 / DEEP) {
            const int k = t % DEEP;
            const bool in = k0 + k < K;
            left[k][row] = in && m0 + row < M ? to_float(x[(m0 + row) * K + k0 + k]) : 0.0f;
            right[k][row] = in && n0 + row < N ? to_float(w[(n0 + row) * K + k0 + k]) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < DEEP; ++k) {
            const float a0 = left[k][ty], a1 = left[k][ty + 16], b0 = right[k][tx], b1 = right[k][tx + 16];
            c00 += a0 * b0, c01 += a0 * b1, c10 += a1 * b0, c11 += a1 * b1;
        }
        __syncthreads();
    }
    const auto put = [&](int64_t m, int64_t n, float v) {
        if (m >= M || n >= N) return;
        v += to_float(b[n]);
        y[m * N + n] = from_float(kRelu ? (v < 0.0f ? 0.0f : v) : v);
    };
    put(m0 + ty, n0 + tx, c00);
    put(m0 + ty, n0 + tx + 16, c01);
    put(m0 + ty + 16, n0 + tx, c10);
    put(m0 + ty + 16, n0 + tx + 16, c11);
}

static dim3 grid_for(int64_t M, int64_t N) {
    return dim3(unsigned((N + TILE - 1) / TILE), unsigned((M + TILE - 1) / TILE));
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    static cudaStream_t stream = nullptr;
    static scalar_t* hidden = nullptr;
    static int64_t capacity = 0;
    if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (const int64_t need = batch_size * (layer_size1 + layer_size2); need > capacity) {
        cudaFree(hidden);
        cudaMalloc(&hidden, need * sizeof(scalar_t));
        capacity = need;
    }
    using P = const scalar_t*;
    scalar_t* second = hidden + batch_size * layer_size1;

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    dense<true><<<grid_for(batch_size, layer_size1), 256, 0, stream>>>(hidden, P(x), P(network_0_weight), P(network_0_bias),
                                                                      batch_size, input_size, layer_size1);
    dense<true><<<grid_for(batch_size, layer_size2), 256, 0, stream>>>(second, hidden, P(network_2_weight), P(network_2_bias),
                                                                      batch_size, layer_size1, layer_size2);
    dense<false><<<grid_for(batch_size, output_size), 256, 0, stream>>>(
        static_cast<scalar_t*>(output), second, P(network_4_weight), P(network_4_bias), batch_size, layer_size2, output_size);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, 0);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
}
