// A second way to time a launcher, which shares nothing with the harness: prints the median of its calls in microseconds.
//
//   PROGRAM BYTES...        one tensor each; p[0] is the output
//
// case.hpp includes the kernel and defines CALL, e.g. as launch_gpu_implementation(p[0], p[1], 4096).
//
// Before each call 256 MB are written, which leaves nothing of the tensors in L2, and a kernel spins long enough for the
// host to launch the call behind it.
#include "case.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace second_clock {

constexpr int kCalls = 60, kWarm = 10;
constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr unsigned long long kSpinNs = 200'000;

void must(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void spin() {
    const unsigned long long until = nanoseconds() + kSpinNs;
    while (nanoseconds() < until) continue;
}

// Halves between 1/2 and 1 in no order.
__global__ void draw(unsigned short* to, size_t count, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        unsigned state = unsigned(i) * 747796405u + seed;
        state = ((state >> 15) ^ state) * 277803737u;
        to[i] = static_cast<unsigned short>(0x3800 | ((state >> 20) & 0x3FF));
    }
}

}  // namespace second_clock

int main(int argc, char** argv) {
    using namespace second_clock;
    std::vector<void*> p(argc - 1);
    for (int i = 1; i < argc; ++i) {
        const size_t bytes = std::strtoull(argv[i], nullptr, 10);
        must(cudaMalloc(&p[i - 1], bytes));
        draw<<<1024, 256>>>(static_cast<unsigned short*>(p[i - 1]), bytes / 2, 12345u + i);
    }
    void* flush = nullptr;
    must(cudaMalloc(&flush, kFlushBytes));
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    std::vector<float> times;
    for (int i = 0; i < kWarm + kCalls; ++i) {
        must(cudaMemset(flush, i, kFlushBytes));
        spin<<<1, 1>>>();
        must(cudaEventRecord(begin));
        CALL;
        must(cudaEventRecord(end));
        must(cudaDeviceSynchronize());
        float ms = 0;
        must(cudaEventElapsedTime(&ms, begin, end));
        if (i >= kWarm) times.push_back(1000 * ms);
    }
    std::sort(times.begin(), times.end());
    std::printf("%.3f\n", times[times.size() / 2]);
}
