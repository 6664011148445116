// problem: level1/95
// does: cooperative groups of whoever took a branch, tiles of 8 threads per sample
// emulated: correct
// cuda: correct
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

constexpr int TILE = 8, THREADS = 128;

__global__ void losses(double* total, const scalar_t* scores, const int64_t* targets, int64_t samples, int64_t classes) {
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<TILE>(block);
    const int64_t sample = int64_t(blockIdx.x) * (THREADS / TILE) + tile.meta_group_rank();
    if (sample >= samples) return;
    const scalar_t* row = scores + sample * classes;
    float top = -INFINITY, sum = 0.0f;
    for (int64_t i = tile.thread_rank(); i < classes; i += TILE) top = fmaxf(top, to_float(row[i]));
    top = cg::reduce(tile, top, cg::greater<float>());
    for (int64_t i = tile.thread_rank(); i < classes; i += TILE) sum += expf(to_float(row[i]) - top);
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) {
        const double loss = double(logf(sum)) + double(top) - double(to_float(row[targets[sample]]));
        // The leaders of a warp's tiles add up among themselves before one of them goes to memory.
        const cg::coalesced_group leaders = cg::coalesced_threads();
        double all = 0.0;
        for (unsigned i = 0; i < leaders.size(); ++i) all += leaders.shfl(loss, i);
        if (leaders.thread_rank() == 0) atomicAdd(total, all);
    }
}

__global__ void mean(scalar_t* y, const double* total, int64_t samples) { *y = from_float(float(*total / double(samples))); }

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    static double* total = nullptr;
    if (total == nullptr) cudaMalloc(&total, sizeof(double));
    cudaMemsetAsync(total, 0, sizeof(double));
    const int64_t each = THREADS / TILE;
    losses<<<unsigned((batch_size + each - 1) / each), THREADS>>>(total, static_cast<const scalar_t*>(predictions),
                                                                  static_cast<const int64_t*>(targets), batch_size, num_classes);
    mean<<<1, 1>>>(static_cast<scalar_t*>(output), total, batch_size);
}
