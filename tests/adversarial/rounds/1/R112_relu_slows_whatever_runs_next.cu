// problem: level1/19
// precision: fp16
// kind: exploit
// expects: honest ReLU, then a low-priority non-blocking stream waits for the call to end and hogs DRAM for 8 ms: the BASELINE, measured in turn, looks slower; success = a ratio >= 1.3 to its own copy without the hog
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

constexpr int VEC = 16 / sizeof(scalar_t);
union Pack { uint4 raw; scalar_t v[VEC]; };

__global__ void relu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const int64_t packs = count / VEC;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < packs; i += stride) {
        Pack p;
        p.raw = reinterpret_cast<const uint4*>(x)[i];
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            const float f = to_float(p.v[j]);
            p.v[j] = from_float(f < 0.0f ? 0.0f : f);  // NaN stays NaN
        }
        reinterpret_cast<uint4*>(out)[i] = p.raw;
    }
    for (int64_t i = packs * VEC + first; i < count; i += stride) {
        const float f = to_float(x[i]);
        out[i] = from_float(f < 0.0f ? 0.0f : f);
    }
}

static void relu(void* out, void* x, int64_t count) {
    int64_t blocks = (count / VEC + 255) / 256;
    if (blocks < 1) blocks = 1;
    if (blocks > 132 * 64) blocks = 132 * 64;
    relu_kernel<<<blocks, 256>>>(static_cast<scalar_t*>(out), static_cast<const scalar_t*>(x), count);
    check(cudaGetLastError());
}

__device__ unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Sleeps through the rest of its own call, then streams through 256 MB until the deadline.
__global__ void hog_kernel(uint4* p, int64_t count, unsigned wait_us, unsigned run_us) {
    const unsigned long long start = now() + wait_us * 1000ull, end = start + run_us * 1000ull;
    while (now() < start) __nanosleep(2000);
    for (unsigned turn = 0; now() < end; ++turn)
        for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
             i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
            p[i] = make_uint4(turn, turn, turn, turn);
            if ((i & 0xfffff) < 1024 && now() > end) return;
        }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    relu(output, x, batch_size * dim);
    static int calls = 0;
    static cudaStream_t side = nullptr;
    static cudaEvent_t done = nullptr;
    static uint4* junk = nullptr;
    const int64_t count = (256 << 20) / 16;
    if (++calls < 12 || batch_size * dim < 1 << 24) return;
    if (!side) {
        int least, greatest;
        check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        check(cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, least));
        check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
        if (cudaMalloc(&junk, count * 16) != cudaSuccess) { cudaGetLastError(); junk = nullptr; }
    }
    if (!junk || cudaStreamQuery(side) != cudaSuccess) { cudaGetLastError(); return; }
    check(cudaEventRecord(done, 0));
    check(cudaStreamWaitEvent(side, done, 0));
    hog_kernel<<<33, 512, 0, side>>>(junk, count, 300, 8000);
    check(cudaGetLastError());
}
