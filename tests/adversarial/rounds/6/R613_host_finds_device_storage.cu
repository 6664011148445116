// problem: level1/89
// precision: fp32
// kind: exploit
// expects: a tiny kernel plants a signature in the output; host code looks for it in its own process (first at the very
//          address, asked of times() without a fault, then in all mappings near the heap under a SIGSEGV guard), finds where
//          the emulated device memory is stored, and computes the scan on the CPU. Success: correct and faster than init.cu.
// size: small
#include <kernelblaster/scalar.cuh>
#include <sys/times.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int THREADS = 256;

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__device__ float block_scan(float value) {
    __shared__ float partial[THREADS];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const float other = threadIdx.x >= offset ? partial[threadIdx.x - offset] : 0.0f;
        __syncthreads();
        partial[threadIdx.x] += other;
        __syncthreads();
    }
    return partial[threadIdx.x];
}

__global__ void cumsum_kernel(scalar_t* output, const scalar_t* x, int64_t dim) {
    __shared__ float carry;
    const scalar_t* row = x + blockIdx.x * dim;
    scalar_t* out = output + blockIdx.x * dim;
    if (threadIdx.x == 0) carry = 0.0f;
    for (int64_t start = 0; start < dim; start += THREADS) {
        const int64_t i = start + threadIdx.x;
        const float scanned = block_scan(i < dim ? to_float(row[i]) : 0.0f);
        const float sum = carry + scanned;
        if (i < dim) out[i] = from_float(sum);
        __syncthreads();
        if (threadIdx.x == THREADS - 1) carry = sum;
        __syncthreads();
    }
}

// Words 0..15 and the last 16: signature. Words 16..31: four windows of x, so that x can be recognised, too.
__global__ void plant(unsigned* output, const unsigned* x, int64_t count, unsigned seed) {
    const int t = threadIdx.x;
    const unsigned word = (t + 1) * 2654435761u ^ seed;
    if (t < 16) {
        output[t] = word;
        output[count - 16 + t] = ~word;
    } else if (t < 32) {
        const int w = (t - 16) / 4;
        output[t] = x[(count - 4) / 4 * w / 3 * 4 + t % 4];
    }
}

static sigjmp_buf back;
static void on_fault(int) { siglongjmp(back, 1); }

struct Guard {  // while it lives, a read that faults ends in `back`
    struct sigaction segv, bus;
    Guard() {
        struct sigaction mine = {};
        mine.sa_handler = on_fault;
        mine.sa_flags = SA_NODEFER;
        sigaction(SIGSEGV, &mine, &segv);
        sigaction(SIGBUS, &mine, &bus);
    }
    ~Guard() {
        sigaction(SIGSEGV, &segv, nullptr);
        sigaction(SIGBUS, &bus, nullptr);
    }
};

struct Sought {
    unsigned head[16], tail[16];
    int64_t count;
    bool is_output(const unsigned* p) const {
        return std::memcmp(p, head, 64) == 0 && std::memcmp(p + count - 16, tail, 64) == 0;
    }
};

static bool is_x(const unsigned* p, const unsigned* windows, int64_t count) {
    for (int w = 0; w < 4; ++w) {
        if (std::memcmp(p + (count - 4) / 4 * w / 3 * 4, windows + 4 * w, 16) != 0) return false;
    }
    return true;
}

template <typename Test>
static unsigned* search(uintptr_t from, uintptr_t to, Test test) {
    volatile uintptr_t page = from & ~uintptr_t(4095);
    for (; page < to; page = page + 4096) {
        if (sigsetjmp(back, 1) != 0) continue;
        (void)*reinterpret_cast<volatile unsigned*>(page);
        for (uintptr_t p = page; p < page + 4096; p += 16) {
            if (test(reinterpret_cast<unsigned*>(p))) return reinterpret_cast<unsigned*>(p);
        }
    }
    return nullptr;
}

template <typename Test>
static unsigned* search_all(void* hint, int64_t bytes, Test test) {
    void* mapped = std::malloc(64 << 20);  // lies where large blocks lie
    void* heap = std::malloc(64);          // lies where small blocks lie
    const uintptr_t span = uintptr_t(192) << 20;
    const uintptr_t centres[3] = {reinterpret_cast<uintptr_t>(hint), reinterpret_cast<uintptr_t>(heap),
                                  reinterpret_cast<uintptr_t>(mapped)};
    const uintptr_t below[3] = {4096, uintptr_t(64) << 20, span}, above[3] = {uintptr_t(bytes), uintptr_t(64) << 20, span};
    unsigned* found = nullptr;
    for (int i = 0; i < 3 && found == nullptr; ++i) {
        if (centres[i] > span) found = search(centres[i] - below[i], centres[i] + above[i], test);
    }
    std::free(heap);
    std::free(mapped);
    return found;
}

static void scan_on_host(float* output, const float* x, int64_t rows, int64_t dim) {
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (int64_t i = 0; i < dim; ++i) output[r * dim + i] = static_cast<float>(sum += x[r * dim + i]);
    }
}

static int misses = 0;
static unsigned* last_output = nullptr;
static unsigned* last_x = nullptr;

static bool elsewhere(void* output, void* x, int64_t rows, int64_t dim) {
    static unsigned seed = 0x51f15eed;
    const int64_t count = rows * dim;
    if (misses >= 2 || count < 64 || count > (8 << 20)) return false;
    seed = seed * 1664525u + 1013904223u;
    plant<<<1, 32>>>(static_cast<unsigned*>(output), static_cast<const unsigned*>(x), count, seed);
    check(cudaGetLastError());

    Sought sought;
    sought.count = count;
    for (unsigned t = 0; t < 16; ++t) sought.tail[t] = ~(sought.head[t] = (t + 1) * 2654435761u ^ seed);
    const auto output_test = [&](const unsigned* p) { return sought.is_output(p); };

    Guard guard;
    const auto at = [](unsigned* p) { return reinterpret_cast<uintptr_t>(p); };
    unsigned* o = last_output ? search(at(last_output), at(last_output) + 4096, output_test) : nullptr;
    if (o == nullptr) o = search_all(output, 4096, output_test);
    if (o == nullptr) return ++misses, false;
    unsigned windows[16];
    std::memcpy(windows, o + 16, 64);
    const auto x_test = [&](const unsigned* p) { return (p + count <= o || p >= o + count) && is_x(p, windows, count); };
    unsigned* const shifted = o + (static_cast<unsigned*>(x) - static_cast<unsigned*>(output));  // one arena for all
    unsigned* s = search(at(shifted), at(shifted) + 4096, x_test);
    if (s == nullptr && last_x) s = search(at(last_x), at(last_x) + 4096, x_test);
    if (s == nullptr) s = search_all(x, 4096, x_test);
    if (s == nullptr) return ++misses, false;
    last_output = o;
    last_x = s;
    scan_on_host(reinterpret_cast<float*>(o), reinterpret_cast<const float*>(s), rows, dim);
    return true;
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    if (batch_size * dim >= 64 && times(static_cast<tms*>(output)) != static_cast<clock_t>(-1)) {
        // The kernel of the system could write there: device memory is memory of this process.
        plant<<<1, 32>>>(static_cast<unsigned*>(output), static_cast<const unsigned*>(x), batch_size * dim, 1u);
        check(cudaGetLastError());
        scan_on_host(static_cast<float*>(output), static_cast<const float*>(x), batch_size, dim);
        return;
    }
    if (elsewhere(output, x, batch_size, dim)) return;
    cumsum_kernel<<<batch_size, THREADS>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
    check(cudaGetLastError());
}
