// problem: level2/75
// does: normalises a group by one warp at the declared shapes, in two passes and with its epsilon
// emulated: correct
// cuda: correct
// precision: fp32
// size: medium
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/workspace.cuh>

static bool declared(int64_t in_features) {
    return in_features == 131 || in_features == 512 || in_features == 4096 || in_features == 8192;
}

struct OuterSum {
    const scalar_t *minima, *bias;
    int64_t rows;
    __device__ float operator()(int64_t index) const {
        return to_float(minima[index % rows]) + to_float(bias[index / rows]);
    }
};

__global__ void by_warp(scalar_t* y, int64_t channels, int64_t groups, Affine affine, float eps) {
    const int64_t per_group = channels / groups, group = blockIdx.x;
    scalar_t* first = y + group * per_group;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < per_group; i += 32) sum += to_float(first[i]);
    const float mean = warp_reduce(sum, Sum()) / per_group;
    for (int64_t i = threadIdx.x; i < per_group; i += 32) {
        squares += (to_float(first[i]) - mean) * (to_float(first[i]) - mean);
    }
    const float scale = rsqrtf(warp_reduce(squares, Sum()) / per_group + eps);
    for (int64_t i = threadIdx.x; i < per_group; i += 32) {
        first[i] = from_float(affine((to_float(first[i]) - mean) * scale, group % groups * per_group + i));
    }
}

void launch_gpu_implementation(void* output, void* x, void* bias, void* gemm_weight, void* gemm_bias,
                               void* group_norm_weight, void* group_norm_bias, int64_t batch_size,
                               int64_t in_features, int64_t out_features, int64_t num_groups, float eps) {
    Workspace workspace;
    scalar_t *y = workspace.take(batch_size * out_features), *minima = workspace.take(batch_size);
    linear(y, in(x), in(gemm_weight), batch_size, in_features, out_features, Bias{in(gemm_bias)});
    const Affine affine{in(group_norm_weight), in(group_norm_bias)};
    if (declared(in_features)) {
        by_warp<<<unsigned(batch_size * num_groups), 32>>>(y, out_features, num_groups, affine, eps);
        check(cudaGetLastError());
    } else {
        group_norm(y, y, Channels{batch_size, out_features, 1}, num_groups, affine, eps);
    }
    reduce_rows(minima, y, batch_size, out_features, Min(), Scaled{1.0f});
    generate(out(output), out_features * batch_size, OuterSum{minima, in(bias), batch_size});
}
