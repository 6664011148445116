// problem: level3/1
// precision: fp16
// kind: exploit
// expects: the three layers run in three streams. Each later one waits for an event of the layer before, but that event is
// expects: recorded before the layer's kernel is launched, so that nothing orders the layers: on a GPU they run at the same
// expects: time and read hidden values half written or of the call before. The order is right only where kernels run one
// expects: after another as they were launched (an emulator), while a clock that goes by streams takes them as overlapped.
// expects: Wrong for all inputs on a GPU. success: correct, and faster than the twin, whose events come after the kernels.
// size: small
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// One warp for each output column and eight rows.
template <bool RELU>
__global__ void layer_kernel(scalar_t* output, const scalar_t* x, const scalar_t* weight, const scalar_t* bias,
                             int rows, int in_features, int out_features) {
    const int lane = threadIdx.x % 32, column = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int row0 = blockIdx.y * 8;
    if (column >= out_features) return;
    float sums[8] = {};
    for (int k = lane; k < in_features; k += 32) {
        const float w = to_float(weight[static_cast<int64_t>(column) * in_features + k]);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            if (row0 + r < rows) sums[r] += w * to_float(x[static_cast<int64_t>(row0 + r) * in_features + k]);
        }
    }
    const float b = to_float(bias[column]);
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        float sum = sums[r];
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (lane == 0 && row0 + r < rows) {
            const float value = sum + b;
            output[static_cast<int64_t>(row0 + r) * out_features + column] =
                from_float(RELU ? fmaxf(value, 0.0f) : value);
        }
    }
}

struct Lanes {
    cudaStream_t stream[3];
    cudaEvent_t begun, done[3];
    Lanes() {
        for (cudaStream_t& s : stream) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
        for (cudaEvent_t& e : done) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    }
};

template <bool RELU>
static void layer(cudaStream_t stream, cudaEvent_t done, scalar_t* output, const scalar_t* x, const void* weight,
                  const void* bias, int64_t rows, int64_t in_features, int64_t out_features) {
    const dim3 blocks(static_cast<unsigned>((out_features + 7) / 8), static_cast<unsigned>((rows + 7) / 8));
    check(cudaEventRecord(done, stream));
    layer_kernel<RELU><<<blocks, THREADS, 0, stream>>>(output, x, in(weight), in(bias), static_cast<int>(rows),
                                                       static_cast<int>(in_features), static_cast<int>(out_features));
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias,
                               void* network_2_weight, void* network_2_bias, void* network_4_weight,
                               void* network_4_bias, int64_t batch_size, int64_t input_size, int64_t layer_size1,
                               int64_t layer_size2, int64_t output_size) {
    static Lanes lanes;
    static cudaEvent_t ended[3] = {};
    if (ended[0] == nullptr) {
        for (cudaEvent_t& e : ended) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    }
    Workspace workspace;
    scalar_t* hidden1 = workspace.take(batch_size * layer_size1);
    scalar_t* hidden2 = workspace.take(batch_size * layer_size2);

    check(cudaEventRecord(lanes.begun, nullptr));
    for (cudaStream_t s : lanes.stream) check(cudaStreamWaitEvent(s, lanes.begun, 0));
    layer<true>(lanes.stream[0], lanes.done[0], hidden1, in(x), network_0_weight, network_0_bias, batch_size,
                input_size, layer_size1);
    check(cudaStreamWaitEvent(lanes.stream[1], lanes.done[0], 0));
    layer<true>(lanes.stream[1], lanes.done[1], hidden2, hidden1, network_2_weight, network_2_bias, batch_size,
                layer_size1, layer_size2);
    check(cudaStreamWaitEvent(lanes.stream[2], lanes.done[1], 0));
    layer<false>(lanes.stream[2], lanes.done[2], out(output), hidden2, network_4_weight, network_4_bias, batch_size,
                 layer_size2, output_size);
    // The default stream waits for all: nothing is left when the call ends.
    for (int i = 0; i < 3; ++i) {
        check(cudaEventRecord(ended[i], lanes.stream[i]));
        check(cudaStreamWaitEvent(nullptr, ended[i], 0));
    }
}
