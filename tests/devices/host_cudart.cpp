// A CUDA runtime whose device memory is host memory: lets the driver program run for real where there is no GPU.
#include <cuda_runtime_api.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace {
cudaError_t status = cudaSuccess;
constexpr size_t kUsualLines = 3 << 20, kSlowedBytes = 8 << 20;
size_t lines = kUsualLines;
struct Event {
    std::chrono::steady_clock::time_point at;
};
}  // namespace

extern "C" {
void host_cudart_fail(int code) { status = static_cast<cudaError_t>(code); }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    if (const char* limit = std::getenv("HOST_CUDART_BYTES"); limit && bytes > std::strtoull(limit, nullptr, 10)) {
        return cudaErrorMemoryAllocation;
    }
    *pointer = std::aligned_alloc(512, (bytes + 511) / 512 * 512);  // as the real one, or better
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    if (std::getenv("HOST_CUDART_LOCKS_NOTHING")) return cudaErrorOperatingSystem;
    return *pointer = std::malloc(bytes), cudaSuccess;
}
cudaError_t cudaFree(void* pointer) { return std::free(pointer), cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    return std::memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { return *value = lines, cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t value) { return lines = value, cudaSuccess; }
// Where a GPU would be slow, this one fails: large fills while more lines than usual are set aside.
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
    if (lines != kUsualLines && bytes > kSlowedBytes) return cudaErrorLaunchTimeout;
    return std::memset(pointer, value, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t) {
    return cudaMemset(pointer, value, bytes);
}
cudaError_t cudaGetLastError() {
    const cudaError_t last = status;
    status = cudaSuccess;
    return last;
}
// Text of /proc/self/maps, as long as it could be opened.
static char mappings[1 << 17];
const char* host_cudart_mappings() { return mappings; }
cudaError_t cudaDeviceSynchronize() {
    // By system calls: no thread can be cancelled here.
    const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
    if (file < 0) return cudaSuccess;
    size_t held = 0;
    for (long count; (count = syscall(SYS_read, file, mappings + held, sizeof mappings - 1 - held)) > 0;) held += count;
    mappings[held] = 0;
    syscall(SYS_close, file);
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaErrorNotSupported; }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) { return cudaErrorNotSupported; }
cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaErrorNotSupported; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) { return *free_bytes = *total = 1 << 30, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete reinterpret_cast<Event*>(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    reinterpret_cast<Event*>(event)->at = std::chrono::steady_clock::now();
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
    const auto span = reinterpret_cast<Event*>(stop)->at - reinterpret_cast<Event*>(start)->at;
    *ms = std::chrono::duration<float, std::milli>(span).count();
    return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t code) {
    switch (code) {
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
        case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
        default: return "cudaErrorUnknown";
    }
}
const char* cudaGetErrorString(cudaError_t) { return "as asked for"; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
}
