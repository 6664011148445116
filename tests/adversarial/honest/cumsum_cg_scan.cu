// problem: level1/89
// does: cooperative groups' inclusive_scan and exclusive_scan
// emulated: correct
// cuda: correct
// precision: bf16
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

__global__ void __launch_bounds__(256) scan(scalar_t* y, const scalar_t* x, int64_t n) {
    __shared__ float totals[8];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float carry = 0.0f;
    for (int64_t start = 0; start < n; start += block.size()) {
        const int64_t i = start + block.thread_rank();
        const float value = i < n ? to_float(x[i]) : 0.0f;
        const float inside = cg::inclusive_scan(warp, value, cg::plus<float>());
        if (warp.thread_rank() == 31) totals[warp.meta_group_rank()] = inside;
        block.sync();
        const float total = warp.thread_rank() < 8 ? totals[warp.thread_rank()] : 0.0f;
        const float before = cg::exclusive_scan(warp, total, cg::plus<float>());
        const float sum = carry + warp.shfl(before, warp.meta_group_rank()) + inside;
        if (i < n) y[i] = from_float(sum);
        carry += warp.shfl(before, 8);
        block.sync();
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    scan<<<unsigned(batch_size), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
