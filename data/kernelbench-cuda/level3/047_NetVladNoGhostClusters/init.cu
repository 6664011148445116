// Scores, their normalisation and softmax; products of features and weights minus the centres' part; two norms.
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
    softmax(assigned, assigned, AxisView{rows, cluster_size, 1});
    reduce_axis(assigned_sums, assigned, AxisView{batch_size, points, cluster_size}, Sum(), Scaled{1.0f});
    matmul(residuals, Matrix{in(x), 1, feature_size, points * feature_size},
           Matrix{assigned, cluster_size, 1, points * cluster_size},
           Product{feature_size, cluster_size, points, batch_size},
           MinusCentres{assigned_sums, in(clusters2), feature_size, cluster_size});
    normalize(residuals, residuals, AxisView{batch_size, feature_size, cluster_size});
    normalize(out(output), residuals, AxisView{batch_size, feature_size * cluster_size, 1});
}
