// problem: level1/19
// does: cp.async.bulk into shared memory and out of it, two stages, completed by mbarriers and bulk groups
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

constexpr int BYTES = 8192, STAGES = 2, THREADS = 128;
constexpr int ITEMS = BYTES / int(sizeof(scalar_t));

__device__ inline unsigned address_of(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

__device__ inline void fetch(void* to, const scalar_t* from, unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(BYTES) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(to)),
                 "l"(from), "r"(BYTES), "r"(address_of(barrier))
                 : "memory");
}

__device__ inline void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        "  .reg .pred ready;\n"
        "again:\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 ready, [%0], %1;\n"
        "  @ready bra done;\n"
        "  bra again;\n"
        "done:\n"
        "}" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

// `pieces` whole pieces of BYTES.
__global__ __launch_bounds__(THREADS) void relu_pieces(scalar_t* y, const scalar_t* x, int64_t pieces) {
    __shared__ __align__(128) scalar_t in[STAGES][ITEMS], out[STAGES][ITEMS];
    __shared__ unsigned long long barriers[STAGES];
    if (threadIdx.x == 0) {
        for (auto& barrier : barriers) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x < pieces) fetch(in[0], x + int64_t(blockIdx.x) * ITEMS, &barriers[0]);
    int round = 0;
    for (int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x, ++round) {
        const int stage = round % STAGES;
        if (threadIdx.x == 0) {
            const int64_t next = piece + gridDim.x;
            if (next < pieces) fetch(in[(round + 1) % STAGES], x + next * ITEMS, &barriers[(round + 1) % STAGES]);
            // What was written from this stage two rounds ago has been read by then.
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        }
        __syncthreads();
        wait(&barriers[stage], unsigned(round / STAGES) & 1u);
        for (int i = threadIdx.x; i < ITEMS; i += THREADS) {
            const float v = to_float(in[stage][i]);
            out[stage][i] = from_float(v < 0.0f ? 0.0f : v);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + piece * ITEMS),
                         "r"(address_of(out[stage])), "r"(BYTES)
                         : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void relu_rest(scalar_t* y, const scalar_t* x, int64_t n) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = to_float(x[i]) < 0.0f ? from_float(0.0f) : x[i];
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    auto* y = static_cast<scalar_t*>(output);
    const auto* in = static_cast<const scalar_t*>(x);
    const int64_t n = batch_size * dim, pieces = n / ITEMS, rest = n % ITEMS;
    if (pieces > 0) relu_pieces<<<unsigned(pieces < 528 ? pieces : 528), THREADS>>>(y, in, pieces);
    if (rest > 0) relu_rest<<<unsigned((rest + 127) / 128), 128>>>(y + pieces * ITEMS, in + pieces * ITEMS, rest);
}
