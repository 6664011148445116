// Does a kernel gain by lines that L2 gives up last (evict_last) from one timed call to the next?
//
//     nvcc -arch=sm_90 -O3 -o l2_priority benchmarks/l2_priority.cu && ./l2_priority
//
// Scales the rows of a 4096 x 4096 fp16 matrix by four kernels: with B's first 26 MiB read by that priority or not, and
// B's end read as what goes first or not. Each call is timed as the harness times it: lines that persist are made usual
// ones, twice the L2 is written, a fill covers the launch, two events. Varied are what the harness does against it (that
// reset; the places that calls find their tensors in; what the flush ends with) and whether kernels come in turns.
// Printed are median/mean (standard error) in microseconds, mean and error without the lowest and highest 5 %.
// docs/results/l2_priority_h200.txt is of an H200 (CUDA 13.0), by a version that kept fewer of the standard errors.
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
    std::exit(1);
}

constexpr int VEC = 16 / sizeof(__half), THREADS = 256;
constexpr int64_t N = 4096, M = 4096, PACKS = N * M / VEC;
constexpr int64_t FIRST = int64_t{26} << 20;  // bytes of B before its end
constexpr size_t COVER = 32 << 20;            // bytes of the fill that covers the launch
constexpr int MOST_PLACES = 8, CALLS = 400, BLOCKS = 8, WARM_UP = 8, KERNELS = 4;
constexpr const char* NAMES[KERNELS] = {"kept+end", "end", "kept", "plain"};

struct alignas(16) Pack {
    __half v[VEC];
};

__device__ __forceinline__ uint4 load_kept(const uint4* at) {
    uint64_t policy;
    uint4 r;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(at), "l"(policy));
    return r;
}

template <bool KEEP, bool STREAM_END>
__global__ void scale_packs(__half* C, const __half* A, const __half* B) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= PACKS) return;
    union {
        uint4 raw;
        Pack pack;
    };
    const uint4* at = reinterpret_cast<const uint4*>(B) + i;
    const bool first = i < FIRST / 16;
    raw = KEEP && first ? load_kept(at) : !STREAM_END || first ? __ldg(at) : __ldcs(at);
    const float a = __half2float(A[i / (M / VEC)]);
    for (int j = 0; j < VEC; ++j) pack.v[j] = __float2half(a * __half2float(pack.v[j]));
    __stcs(reinterpret_cast<uint4*>(C) + i, raw);
}

__global__ void read_all(const uint4* from, size_t count, unsigned* sink) {
    unsigned seen = 0;
    const size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step) seen ^= from[i].x;
    if (seen == 0x12345) *sink = seen;
}

enum class FlushEnd { WRITES, WRITES_THEN_RESET, READS };

struct Setting {
    bool apart;  // each kernel in blocks of its own, as in a process that times it; else in turns
    bool reset;  // of lines that persist, before the flush
    FlushEnd end;
    int places;
};

class Bench {
   public:
    Bench() {
        cudaDeviceProp facts;
        check(cudaGetDeviceProperties(&facts, 0));
        std::printf("%s, L2 of %d bytes, of which %d may persist\n", facts.name, facts.l2CacheSize,
                    facts.persistingL2CacheMaxSize);
        flush_bytes_ = 2 * size_t(facts.l2CacheSize);
        check(cudaMalloc(&flush_, flush_bytes_));
        check(cudaMalloc(&clean_, flush_bytes_));
        check(cudaMemset(clean_, 1, flush_bytes_));
        check(cudaMalloc(&sink_, sizeof *sink_));
        for (int place = 0; place < MOST_PLACES; ++place) {
            check(cudaMalloc(&a_[place], N * sizeof(__half)));
            check(cudaMalloc(&b_[place], N * M * sizeof(__half)));
            check(cudaMalloc(&c_[place], N * M * sizeof(__half)));
            check(cudaMemset(a_[place], 0x11, N * sizeof(__half)));
            check(cudaMemset(b_[place], 0x22, N * M * sizeof(__half)));
        }
        check(cudaEventCreate(&start_));
        check(cudaEventCreate(&stop_));
    }

    std::array<std::vector<double>, KERNELS> times(const Setting& how) {
        std::array<std::vector<double>, KERNELS> found;
        if (how.apart) {
            for (int block = 0; block < BLOCKS; ++block) {
                for (int kernel = 0; kernel < KERNELS; ++kernel) {
                    for (int i = 0; i < CALLS / BLOCKS + WARM_UP; ++i) {
                        const double us = call(how, kernel, i);
                        if (i >= WARM_UP) found[kernel].push_back(us);
                    }
                }
            }
            return found;
        }
        for (int i = 0; i < CALLS; ++i) {
            for (int k = 0; k < KERNELS; ++k) {
                const int kernel = (k + i) % KERNELS;
                found[kernel].push_back(call(how, kernel, i));
            }
        }
        return found;
    }

   private:
    double call(const Setting& how, int kernel, int turn) {
        const int place = turn % how.places;
        if (how.reset) check(cudaCtxResetPersistingL2Cache());
        check(cudaMemsetAsync(flush_, 0xA5, flush_bytes_));
        check(cudaDeviceSynchronize());
        if (how.end == FlushEnd::WRITES_THEN_RESET) check(cudaCtxResetPersistingL2Cache());
        if (how.end == FlushEnd::READS) {
            read_clean();
            check(cudaDeviceSynchronize());
            read_clean();
        } else {
            check(cudaMemsetAsync(flush_, 0xA5, COVER));
        }
        check(cudaEventRecord(start_));
        launch(kernel, c_[place], a_[place], b_[place]);
        check(cudaEventRecord(stop_));
        check(cudaDeviceSynchronize());
        float ms = 0.0f;
        check(cudaEventElapsedTime(&ms, start_, stop_));
        return ms * 1e3;
    }

    void read_clean() { read_all<<<1024, 256>>>(reinterpret_cast<const uint4*>(clean_), flush_bytes_ / 16, sink_); }

    static void launch(int kernel, __half* c, const __half* a, const __half* b) {
        constexpr unsigned blocks = (PACKS + THREADS - 1) / THREADS;
        if (kernel == 0) scale_packs<true, true><<<blocks, THREADS>>>(c, a, b);
        if (kernel == 1) scale_packs<false, true><<<blocks, THREADS>>>(c, a, b);
        if (kernel == 2) scale_packs<true, false><<<blocks, THREADS>>>(c, a, b);
        if (kernel == 3) scale_packs<false, false><<<blocks, THREADS>>>(c, a, b);
    }

    size_t flush_bytes_ = 0;
    char *flush_ = nullptr, *clean_ = nullptr;
    unsigned* sink_ = nullptr;
    std::array<__half*, MOST_PLACES> a_{}, b_{}, c_{};
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// Prints median, mean and standard error of each kernel, and returns the means.
static std::array<double, KERNELS> tell(std::array<std::vector<double>, KERNELS> times) {
    std::array<double, KERNELS> means{};
    for (int kernel = 0; kernel < KERNELS; ++kernel) {
        auto& us = times[kernel];
        std::sort(us.begin(), us.end());
        double sum = 0.0, squares = 0.0;
        const size_t from = us.size() / 20, to = us.size() * 19 / 20;
        for (size_t i = from; i < to; ++i) sum += us[i], squares += us[i] * us[i];
        const double count = double(to - from), mean = sum / count;
        std::printf(" %s %.2f/%.2f (%.3f)", NAMES[kernel], us[us.size() / 2], mean,
                    std::sqrt((squares / count - mean * mean) / count));
        means[kernel] = mean;
    }
    return means;
}

int main() {
    Bench bench;
    constexpr const char* ends[] = {"writes", "writes, then reset", "reads"};
    for (const bool apart : {false, true}) {
        for (const bool reset : {true, false}) {
            for (const FlushEnd end : {FlushEnd::WRITES, FlushEnd::WRITES_THEN_RESET, FlushEnd::READS}) {
                for (const int places : {1, 2, MOST_PLACES}) {
                    std::printf("%s, %s, flush ends with %s, %d place(s):", apart ? "apart" : "in turns",
                                reset ? "reset" : "no reset", ends[static_cast<int>(end)], places);
                    const auto means = tell(bench.times({apart, reset, end, places}));
                    std::printf(" | end/kept+end %.4f plain/kept %.4f\n", means[1] / means[0], means[3] / means[2]);
                }
            }
        }
    }
}
