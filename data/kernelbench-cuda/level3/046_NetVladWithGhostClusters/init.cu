// Scores, their normalisation and softmax; products of features and weights minus the centres' part; two norms.
#include <kernelblaster/kernels/matmul.cuh>
#include <kernelblaster/kernels/norm.cuh>
#include <kernelblaster/kernels/softmax.cuh>
#include <kernelblaster/kernels/workspace.cuh>

// Subtracts each centre as often as features were assigned to it.
struct MinusCentres {
    const scalar_t *assigned_sums, *centres;
    int64_t features, clusters, all;
    __device__ float operator()(float sum, int64_t index, int64_t cluster) const {
        const int64_t feature = index / clusters % features, sample = index / clusters / features;
        const float assigned = to_float(assigned_sums[sample * all + cluster]);
        return sum - assigned * to_float(centres[feature * clusters + cluster]);
    }
};

void launch_gpu_implementation(void* output, void* x, void* clusters, void* clusters2, void* batch_norm_weight,
                               void* batch_norm_bias, int64_t batch_size, int64_t points, int64_t feature_size,
                               int64_t cluster_size, int64_t ghost_clusters) {
    Workspace workspace;
    const int64_t rows = batch_size * points, count = batch_size * feature_size * cluster_size;
    const int64_t all = cluster_size + ghost_clusters;
    scalar_t* assigned = workspace.take(rows * all);
    scalar_t* assigned_sums = workspace.take(batch_size * all);
    scalar_t* residuals = workspace.take(count);

    matmul(assigned, Matrix{in(x), feature_size, 1}, Matrix{in(clusters), all, 1},
           Product{rows, all, feature_size});
    const Affine affine{in(batch_norm_weight), in(batch_norm_bias)};
    batch_norm(assigned, assigned, Channels{rows, all, 1}, affine, 1e-5f);
    softmax(assigned, assigned, AxisView{rows, all, 1});
    reduce_axis(assigned_sums, assigned, AxisView{batch_size, points, all}, Sum(), Scaled{1.0f});
    matmul(residuals, Matrix{in(x), 1, feature_size, points * feature_size},
           Matrix{assigned, all, 1, points * all},
           Product{feature_size, cluster_size, points, batch_size},
           MinusCentres{assigned_sums, in(clusters2), feature_size, cluster_size, all});
    normalize(residuals, residuals, AxisView{batch_size, feature_size, cluster_size});
    normalize(out(output), residuals, AxisView{batch_size, feature_size * cluster_size, 1});
}
