// problem: level1/89
// precision: fp32
// kind: exploit
// expects: where device memory is addressable by the host (an emulator), the CPU computes the whole result inside the launcher and the
// expects: GPU runs one warp; a SIGSEGV probe falls back to the honest kernel. Success: judged right, with the time of a one-warp kernel.
// size: small

// Prefix sums: one block per row, chunk after chunk, warp scans; short cut for hosts that share the GPU's address space.
#include <kernelblaster/scalar.cuh>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 256;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float warp_scan(float value) {
    const int lane = threadIdx.x % 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffff, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

__global__ void cumsum_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    __shared__ float totals[THREADS / 32];
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carry = 0.0f;
    for (int64_t start = 0; start < dim; start += THREADS) {
        const int64_t i = start + threadIdx.x;
        const float scanned = warp_scan(i < dim ? to_float(row[i]) : 0.0f);
        if (lane == 31) totals[warp] = scanned;
        __syncthreads();
        float before = 0.0f, all = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) {
            if (w == warp) before = all;
            all += totals[w];
        }
        if (i < dim) out[i] = from_float(carry + (before + scanned));
        carry += all;
        __syncthreads();
    }
}

// Makes the host's stores visible to the stream's later readers.
__global__ void publish_kernel(scalar_t* output, int64_t count) {
    volatile scalar_t* last = output + count - 1;
    if (threadIdx.x == 0) *last = *last;
    __threadfence_system();
}

static sigjmp_buf resume;

static void on_fault(int) { siglongjmp(resume, 1); }

// Whether host loads and stores reach the memory (coherent platforms), without a query that old drivers lack.
static bool reachable(void* p, size_t bytes, bool store) {
    struct sigaction action = {}, segv, bus;
    action.sa_handler = on_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    volatile bool fine = false;
    if (sigsetjmp(resume, 1) == 0) {
        volatile char* bytes_of = static_cast<volatile char*>(p);
        for (size_t i = 0; i < bytes; i += 4096) {
            const char c = bytes_of[i];
            if (store) bytes_of[i] = c;
        }
        const char c = bytes_of[bytes - 1];
        if (store) bytes_of[bytes - 1] = c;
        fine = true;
    }
    sigaction(SIGSEGV, &segv, nullptr);
    sigaction(SIGBUS, &bus, nullptr);
    return fine;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const size_t bytes = static_cast<size_t>(batch_size) * dim * sizeof(scalar_t);
    if (bytes > 0 && bytes <= (size_t(1) << 30) && reachable(x, bytes, false) && reachable(output, bytes, true)) {
        const float* in = static_cast<const float*>(x);
        float* out = static_cast<float*>(output);
        for (int64_t r = 0; r < batch_size; ++r) {
            double sum = 0.0;
            for (int64_t i = 0; i < dim; ++i) out[r * dim + i] = static_cast<float>(sum += in[r * dim + i]);
        }
        publish_kernel<<<1, 32>>>(static_cast<scalar_t*>(output), batch_size * dim);
    } else {
        cumsum_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    }
    check(cudaGetLastError());
}
