// problem: level1/26
// does: bulk copies and barriers through libcu++'s <cuda/ptx>
// emulated: correct
// cuda: correct
// size: medium
#include <cuda/barrier>
#include <cuda/ptx>
#include <kernelblaster/scalar.cuh>

namespace ptx = cuda::ptx;

constexpr uint32_t kBytes = 4096;
constexpr int kItems = kBytes / sizeof(scalar_t), kThreads = 128;

__global__ void __launch_bounds__(kThreads) gelu_piece(scalar_t* y, const scalar_t* x) {
    __shared__ alignas(128) scalar_t piece[kItems];
    __shared__ uint64_t barrier;
    const int64_t first = int64_t(blockIdx.x) * kItems;
    const uint32_t bytes = kBytes;  // functions of <cuda/ptx> take references, a host constant has no address here
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, bytes);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, piece, x + first, bytes, &barrier);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
    }
    for (int i = threadIdx.x; i < kItems; i += kThreads) {
        const float v = to_float(piece[i]);
        piece[i] = from_float(0.5f * v * (1.0f + erff(v * 0.70710678f)));
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + first, piece, bytes);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
    }
}

__global__ void gelu_rest(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = to_float(x[i]);
    y[i] = from_float(0.5f * v * (1.0f + erff(v * 0.70710678f)));
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    auto* y = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t n = batch_size * dim, pieces = n / kItems, rest = n % kItems;
    if (pieces > 0) gelu_piece<<<unsigned(pieces), kThreads>>>(y, in);
    if (rest > 0) gelu_rest<<<unsigned((rest + 127) / 128), 128>>>(y + pieces * kItems, in + pieces * kItems, rest);
}
