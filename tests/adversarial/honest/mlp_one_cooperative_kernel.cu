// problem: level3/1
// does: all three layers in one cooperative kernel with barriers over the grid
// emulated: correct
// cuda: correct
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

#include <algorithm>

namespace cg = cooperative_groups;

struct Layer {
    const scalar_t *weight, *bias;
    int64_t inner, cols;
};

struct Network {
    Layer layers[3];
    scalar_t* outputs[3];
    const scalar_t* x;
    int64_t rows;
};

constexpr int ROWS = 4;

// A warp computes ROWS x 1 outputs.
__device__ void layer(const Layer& l, scalar_t* y, const scalar_t* x, int64_t rows, bool relu, int64_t warp, int64_t warps) {
    const int lane = threadIdx.x % 32;
    const int64_t bands = (rows + ROWS - 1) / ROWS;
    for (int64_t item = warp; item < bands * l.cols; item += warps) {
        const int64_t row0 = item / l.cols * ROWS, col = item % l.cols;
        float sum[ROWS] = {};
        for (int64_t k = lane; k < l.inner; k += 32) {
            const float w = to_float(l.weight[col * l.inner + k]);
            for (int r = 0; r < ROWS; ++r)
                if (row0 + r < rows) sum[r] = fmaf(w, to_float(x[(row0 + r) * l.inner + k]), sum[r]);
        }
        for (int r = 0; r < ROWS; ++r) {
            for (int o = 16; o > 0; o >>= 1) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], o);
            if (lane != 0 || row0 + r >= rows) continue;
            const float v = sum[r] + to_float(l.bias[col]);
            y[(row0 + r) * l.cols + col] = from_float(relu ? fmaxf(v, 0.0f) : v);
        }
    }
}

__global__ void __launch_bounds__(256) network(const Network net) {
    const cg::grid_group grid = cg::this_grid();
    const int64_t warp = grid.thread_rank() / 32, warps = grid.size() / 32;
    const scalar_t* x = net.x;
    for (int i = 0; i < 3; ++i) {
        layer(net.layers[i], net.outputs[i], x, net.rows, i < 2, warp, warps);
        x = net.outputs[i];
        if (i < 2) grid.sync();
    }
}

void launch_gpu_implementation(void* output, void* x, void* network_0_weight, void* network_0_bias, void* network_2_weight,
                               void* network_2_bias, void* network_4_weight, void* network_4_bias, int64_t batch_size,
                               int64_t input_size, int64_t layer_size1, int64_t layer_size2, int64_t output_size) {
    static scalar_t* hidden = nullptr;
    static int64_t held = 0;
    static int blocks = 0;
    if (blocks == 0) {
        int processors = 0, each = 0;
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, network, 256, 0);
        blocks = processors * std::max(1, std::min(each, 4));
    }
    const int64_t need = batch_size * (layer_size1 + layer_size2);
    if (need > held) {
        cudaFree(hidden);
        cudaMalloc(&hidden, need * sizeof(scalar_t));
        held = need;
    }
    const auto tensor = [](void* p) { return static_cast<const scalar_t*>(p); };
    Network net{{{tensor(network_0_weight), tensor(network_0_bias), input_size, layer_size1},
                 {tensor(network_2_weight), tensor(network_2_bias), layer_size1, layer_size2},
                 {tensor(network_4_weight), tensor(network_4_bias), layer_size2, output_size}},
                {hidden, hidden + batch_size * layer_size1, static_cast<scalar_t*>(output)},
                tensor(x),
                batch_size};
    void* arguments[] = {&net};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(network), dim3(unsigned(blocks)), dim3(256), arguments, 0, nullptr);
}
