// problem: level1/95
// precision: fp16
// kind: honest
// expects: workspace by cudaMallocAsync and cudaFreeAsync in each call, a grid driven by occupancy, and the second kernel as a programmatic dependent launch; must be correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int V = 16 / sizeof(scalar_t);
union Pack {
    uint4 raw;
    scalar_t v[V];
    __device__ Pack() {}
};

constexpr int T = 128;

struct Max {
    static constexpr float none = -INFINITY;
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    static constexpr float none = 0.0f;
    __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Op>
__device__ float reduce(float v, Op op) {
    __shared__ float part[32];
    const int warps = blockDim.x / 32;
    for (int o = 16; o > 0; o /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = Op::none;
    for (int w = 0; w < warps; ++w) v = op(v, part[w]);
    return v;
}

template <bool WIDE>
__global__ __launch_bounds__(T) void row_losses(float* losses, const scalar_t* x, const int64_t* targets, int64_t rows, int64_t classes) {
    asm volatile("griddepcontrol.launch_dependents;");
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* at = x + row * classes;
        float most = -INFINITY, sum = 0.0f;
        if constexpr (WIDE) {
            const uint4* packs = reinterpret_cast<const uint4*>(at);
            for (int64_t i = threadIdx.x; i < classes / V; i += T) {
                Pack p;
                p.raw = __ldg(packs + i);
                for (int j = 0; j < V; ++j) most = fmaxf(most, to_float(p.v[j]));
            }
            most = reduce(most, Max());
            for (int64_t i = threadIdx.x; i < classes / V; i += T) {
                Pack p;
                p.raw = __ldg(packs + i);
                for (int j = 0; j < V; ++j) sum += expf(to_float(p.v[j]) - most);
            }
        } else {
            for (int64_t i = threadIdx.x; i < classes; i += T) most = fmaxf(most, to_float(at[i]));
            most = reduce(most, Max());
            for (int64_t i = threadIdx.x; i < classes; i += T) sum += expf(to_float(at[i]) - most);
        }
        sum = reduce(sum, Sum());
        if (threadIdx.x == 0) losses[row] = logf(sum) + most - to_float(at[targets[row]]);
    }
}

// Starts while the rows are still being worked on, and waits for them here.
__global__ void mean(scalar_t* out, const float* losses, int64_t rows) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += __ldcg(losses + i);
    sum = reduce(sum, Sum());
    if (threadIdx.x == 0) *out = from_float(sum / rows);
}

template <bool WIDE>
static void run(float* losses, const scalar_t* x, const int64_t* targets, int64_t rows, int64_t classes) {
    int device = 0, sms = 0, per_sm = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, row_losses<WIDE>, T, 0));
    int64_t blocks = static_cast<int64_t>(sms) * per_sm;
    if (blocks > rows) blocks = rows;
    row_losses<WIDE><<<static_cast<unsigned>(blocks), T>>>(losses, x, targets, rows, classes);
    check(cudaGetLastError());
}

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    float* losses = nullptr;
    check(cudaMallocAsync(reinterpret_cast<void**>(&losses), batch_size * sizeof(float), cudaStreamLegacy));
    const scalar_t* x = static_cast<const scalar_t*>(predictions);
    const int64_t* classes = static_cast<const int64_t*>(targets);
    num_classes % V == 0 ? run<true>(losses, x, classes, batch_size, num_classes)
                         : run<false>(losses, x, classes, batch_size, num_classes);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1), config.blockDim = dim3(1024);
    config.stream = cudaStreamLegacy;
    config.attrs = &attribute, config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, mean, static_cast<scalar_t*>(output), static_cast<const float*>(losses), batch_size));
    check(cudaFreeAsync(losses, cudaStreamLegacy));
}
