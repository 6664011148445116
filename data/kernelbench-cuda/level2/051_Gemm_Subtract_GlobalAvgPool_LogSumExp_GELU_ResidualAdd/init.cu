// Linear layer into scratch memory, then the GELU of a log-sum-exp over means of windows for each row, which is added to
// the row's inputs. What a whole row depends on stays in fp32: next to its inputs it may nearly cancel.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct BiasSubtract {
    const scalar_t *bias, *subtract;
    __device__ float operator()(float sum, int64_t, int64_t channel) const {
        return sum + to_float(bias[channel]) - to_float(subtract[channel]);
    }
};

// added[row] = gelu(log(sum of exp(mean of a window))), one block per row.
__global__ void row_kernel(float* added, const float* y, int64_t rows, int64_t windows, int64_t window) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float* values = y + row * windows * window;
        const auto mean = [&](int64_t number) {
            float sum = 0.0f;
            for (int64_t i = 0; i < window; ++i) sum += values[number * window + i];
            return sum / window;
        };
        const ExpSum of_row = block_exp_sum(windows, mean);
        if (threadIdx.x == 0) added[row] = gelu(of_row.maximum + logf(of_row.sum));
    }
}

struct AddToRow {
    const scalar_t* x;
    const float* added;
    int64_t width;
    __device__ float operator()(int64_t index) const { return to_float(x[index]) + added[index / width]; }
};

void launch_gpu_implementation(void* output, void* x, void* subtract, void* gemm_weight, void* gemm_bias,
                               int64_t batch_size, int64_t in_features, int64_t out_features, int64_t window) {
    Workspace workspace;
    float* y = workspace.take_float(batch_size * out_features);
    float* added = workspace.take_float(batch_size);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features,
           BiasSubtract{in(gemm_bias), in(subtract)});
    row_kernel<<<blocks_for(batch_size, 1), THREADS>>>(added, y, batch_size, out_features / window, window);
    check(cudaGetLastError());
    generate(out(output), batch_size * in_features, AddToRow{in(x), added, in_features});
}
