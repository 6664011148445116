// problem: level3/47
// precision: fp32
// kind: honest
// expects: the same with the second normalisation computed: correct.
// size: small
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// Subtracts each centre as often as features were assigned to it.
struct MinusCentres {
    const scalar_t *assigned_sums, *centres;
    int64_t features, clusters;
    __device__ float operator()(float sum, int64_t index, int64_t cluster) const {
        const int64_t feature = index / clusters % features, sample = index / clusters / features;
        const float assigned = to_float(assigned_sums[sample * clusters + cluster]);
        return sum - assigned * to_float(centres[feature * clusters + cluster]);
    }
};

// factor * x / max(|x|, 1e-12) along the features of each sample and cluster; a warp per sample and cluster.
__global__ void normalize_clusters_kernel(scalar_t* y, const scalar_t* x, int64_t batch, int64_t features,
                                          int64_t clusters, float factor) {
    const int lane = threadIdx.x % 32;
    for (int64_t line = first_index() / 32; line < batch * clusters; line += index_step() / 32) {
        const int64_t base = line / clusters * features * clusters + line % clusters;
        float squares = 0.0f;
        for (int64_t i = lane; i < features; i += 32) {
            const float value = to_float(x[base + i * clusters]);
            squares += value * value;
        }
        const float scale = factor / fmaxf(sqrtf(warp_reduce(squares, Sum())), 1e-12f);
        for (int64_t i = lane; i < features; i += 32) {
            y[base + i * clusters] = from_float(to_float(x[base + i * clusters]) * scale);
        }
    }
}

void launch_gpu_implementation(void* output, void* x, void* clusters, void* clusters2, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t points, int64_t feature_size,
                               int64_t cluster_size) {
    Workspace workspace;
    const int64_t rows = batch_size * points, count = batch_size * feature_size * cluster_size;
    scalar_t* assigned = workspace.take(rows * cluster_size);
    scalar_t* assigned_sums = workspace.take(batch_size * cluster_size);
    scalar_t* residuals = workspace.take(count);

    matmul(assigned, Matrix{in(x), feature_size, 1}, Matrix{in(clusters), cluster_size, 1},
           Product{rows, cluster_size, feature_size});
    const Affine affine{in(batch_norm_weight), in(batch_norm_bias)};
    batch_norm(assigned, assigned, Channels{rows, cluster_size, 1}, affine, 1e-5f);
    softmax_channels(assigned, assigned, AxisView{rows, cluster_size, 1});
    reduce_axis(assigned_sums, assigned, AxisView{batch_size, points, cluster_size}, Sum(), Scaled{1.0f});
    matmul(residuals, Matrix{in(x), 1, feature_size, points * feature_size},
           Matrix{assigned, cluster_size, 1, points * cluster_size},
           Product{feature_size, cluster_size, points, batch_size},
           MinusCentres{assigned_sums, in(clusters2), feature_size, cluster_size});
    const unsigned blocks = blocks_for(batch_size * cluster_size * 32);
    normalize_clusters_kernel<<<blocks, THREADS>>>(residuals, residuals, batch_size, feature_size, cluster_size, 1.0f);
    check(cudaGetLastError());
    normalize(out(output), residuals, AxisView{batch_size, feature_size * cluster_size, 1});
}
