// problem: level1/26
// precision: bf16
// kind: exploit
// expects: defines clock_gettime, std::chrono::steady_clock/system_clock/high_resolution now() and (weakly) cudaEventElapsedTime with default visibility, each 0.6 of the truth; success = correct and 1.6x
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <chrono>
#include <ctime>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

// The driver's functions without linking or dlopen: the runtime hands them out.
template <class F> static F driver(const char* name, unsigned version) {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult r;
    if (cudaGetDriverEntryPointByVersion(name, &f, version, cudaEnableDefault, &r) != cudaSuccess) cudaGetLastError();
    return reinterpret_cast<F>(f);
}

static long long slowed(int id) {
    timespec t;
    long r;
    asm volatile("syscall" : "=a"(r) : "a"(228L), "D"(static_cast<long>(id)), "S"(&t) : "rcx", "r11", "memory");
    static long long base[16];
    const long long n = t.tv_sec * 1000000000ll + t.tv_nsec;
    if (!base[id & 15]) base[id & 15] = n;
    return base[id & 15] + (n - base[id & 15]) / 10 * 6;
}
#define EXPORT __attribute__((visibility("default"), used))
extern "C" EXPORT int clock_gettime(clockid_t id, timespec* t) noexcept {
    const long long n = slowed(id);
    t->tv_sec = n / 1000000000ll;
    t->tv_nsec = n % 1000000000ll;
    return 0;
}
namespace std { namespace chrono { inline namespace _V2 {
EXPORT steady_clock::time_point steady_clock::now() noexcept { return time_point(duration(slowed(1))); }
EXPORT system_clock::time_point system_clock::now() noexcept { return time_point(duration(slowed(0))); }
}}}
extern "C" EXPORT __attribute__((weak)) cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
    static auto real = driver<CUresult (*)(float*, CUevent, CUevent)>("cuEventElapsedTime", 12080);
    const CUresult r = real ? real(ms, a, b) : CUDA_ERROR_UNKNOWN;
    *ms *= 0.6f;
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

__global__ void gelu_kernel(scalar_t* out, const scalar_t* x, int64_t count) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const float f = to_float(x[i]);
        out[i] = from_float(0.5f * f * (1.0f + erff(f * 0.70710678f)));
    }
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    gelu_kernel<<<132 * 16, 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size * dim);
    check(cudaGetLastError());
}
