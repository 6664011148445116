// scale * batch_norm(x W^T + b) in the product's epilogue, kept in fp32 since large logits may lie close together;
// then one block per row for the softmax.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/reduce.cuh>
#include <kernelblaster/kernels/workspace.cuh>

struct NormScale {
    const scalar_t *bias, *weight, *shift, *mean, *variance, *scale;
    float* kept;
    float eps;
    __device__ float operator()(float sum, int64_t index, int64_t channel) const {
        const float centred = sum + to_float(bias[channel]) - to_float(mean[channel]);
        const float normal = centred * rsqrtf(to_float(variance[channel]) + eps);
        kept[index] = to_float(*scale) * (normal * to_float(weight[channel]) + to_float(shift[channel]));
        return kept[index];
    }
};

__global__ void softmax_rows_kernel(scalar_t* output, const float* logits, int64_t rows, int64_t width) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float* first = logits + row * width;
        float maximum = -INFINITY, sum = 0.0f;
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) maximum = fmaxf(maximum, first[i]);
        maximum = block_reduce(maximum, Max());
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) sum += expf(first[i] - maximum);
        sum = block_reduce(sum, Sum());
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
            output[row * width + i] = from_float(expf(first[i] - maximum) / sum);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* scale, void* gemm_weight, void* gemm_bias,
                               void* bn_weight, void* bn_bias, void* bn_running_mean, void* bn_running_var,
                               int64_t batch_size, int64_t in_features, int64_t out_features, float eps) {
    Workspace workspace;
    float* logits = workspace.take_float(batch_size * out_features);
    const NormScale epilogue{in(gemm_bias), in(bn_weight), in(bn_bias), in(bn_running_mean), in(bn_running_var),
                             in(scale), logits, eps};
    linear(out(output), in(x), in(gemm_weight), batch_size, in_features, out_features, epilogue);
    softmax_rows_kernel<<<blocks_for(batch_size, 1), THREADS>>>(out(output), logits, batch_size, out_features);
    check(cudaGetLastError());
}
