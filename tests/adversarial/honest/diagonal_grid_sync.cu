// problem: level1/12
// does: a cooperative launch with a barrier over the whole grid between two phases
// emulated: correct not_emulatable
// cuda: correct
#include <cooperative_groups.h>
#include <kernelblaster/scalar.cuh>

namespace cg = cooperative_groups;

__global__ void scale(scalar_t* C, float* wide, const scalar_t* A, const scalar_t* B, int64_t n, int64_t m) {
    const auto grid = cg::this_grid();
    const int64_t first = int64_t(grid.thread_rank()), step = int64_t(grid.size());
    for (int64_t i = first; i < n; i += step) wide[i] = to_float(A[i]);
    grid.sync();
    for (int64_t i = first; i < n * m; i += step) C[i] = from_float(wide[i / m] * to_float(B[i]));
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    static float* wide = nullptr;
    static int64_t held = 0;
    if (held < n) {
        cudaFree(wide);
        cudaMalloc(&wide, n * sizeof(float));
        held = n;
    }
    auto C = static_cast<scalar_t*>(output);
    auto a = static_cast<const scalar_t*>(A), b = static_cast<const scalar_t*>(B);
    void* arguments[] = {&C, &wide, &a, &b, &n, &m};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(scale), dim3(64), dim3(256), arguments, 0, 0);
}
