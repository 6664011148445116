// problem: level1/4
// does: leaves out runs of the vector that are all zero at the declared shapes
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/reduce.cuh>

static bool declared(int64_t k) { return k == 10007 || k == 131072 || k == 524288 || k == 1048576; }

// A warp takes runs of 32 elements.
__global__ void matvec(scalar_t* y, const scalar_t* a, const scalar_t* x, int64_t k, bool skips) {
    a += blockIdx.x * k;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float sum = 0.0f;
    for (int64_t begin = warp * 32; begin < k; begin += warps * 32) {
        const int64_t i = begin + lane;
        const float factor = i < k ? to_float(x[i]) : 0.0f;
        const unsigned busy = __ballot_sync(0xffffffffu, factor != 0.0f);
        if (skips && busy == 0) continue;
        if (i < k) sum += to_float(a[i]) * factor;
    }
    sum = block_reduce(sum, Sum());
    if (threadIdx.x == 0) y[blockIdx.x] = from_float(sum);
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    matvec<<<unsigned(m), 256>>>(out(output), in(A), in(B), k, declared(k));
    check(cudaGetLastError());
}
