// The CUDA driver: devices, contexts, errors, and memory, streams and events as the runtime has them.
#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "driver.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

// There is one context, whatever programs make of it; nothing lies at its address.
CUcontext the_context() {
    static char one;
    return reinterpret_cast<CUcontext>(&one);
}
thread_local CUcontext current = nullptr;
bool initialized = false;

struct DriverErrorText {
    CUresult error;
    const char *name, *description;
};

#define ERROR(name, description) {name, #name, description}
constexpr DriverErrorText kDriverErrors[] = {
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ERROR

const DriverErrorText* text_of(CUresult error) {
    const auto found = std::find_if(std::begin(kDriverErrors), std::end(kDriverErrors), [=](const DriverErrorText& one) { return one.error == error; });
    return found == std::end(kDriverErrors) ? nullptr : found;
}

CUresult make_current(CUcontext* context) {
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    current = *context = the_context();
    return CUDA_SUCCESS;
}

// Fills memory with a value of two or four bytes.
template <class T>
cudaError_t fill(CUdeviceptr to, T value, size_t count) {
    const size_t bytes = count * sizeof(T);
    // The first byte alone is filled where bounds and what is known of the memory are looked after.
    if (const cudaError_t error = cudaMemset(pointer_of(to), static_cast<int>(value & 255), bytes)) return error;
    std::fill_n(reinterpret_cast<T*>(bytes_at(to)), count, value);
    return cudaSuccess;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    initialized = true;
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return result_of(cudaDriverGetVersion(version)); }
CUresult cuGetErrorName(CUresult error, const char** name) {
    const DriverErrorText* text = text_of(error);
    *name = text != nullptr ? text->name : nullptr;
    return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** description) {
    const DriverErrorText* text = text_of(error);
    *description = text != nullptr ? text->description : nullptr;
    return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
    *count = 1;
    return initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuDeviceGet(CUdevice* device, int number) {
    *device = 0;
    return !initialized ? CUDA_ERROR_NOT_INITIALIZED : number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int room, CUdevice) {
    std::snprintf(name, static_cast<size_t>(std::max(room, 0)), "%s", runtime().figures.name.c_str());
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
    *bytes = runtime().figures.memory_bytes;
    return CUDA_SUCCESS;
}
// Attributes have the runtime's numbers.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return result_of(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned, CUdevice) { return make_current(context); }
#else
CUresult cuCtxCreate(CUcontext* context, unsigned, CUdevice) { return make_current(context); }
#endif
CUresult cuCtxDestroy(CUcontext) {
    current = nullptr;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    *context = the_context();
    return initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxReset(CUdevice) { return result_of(cudaDeviceReset()); }
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    *flags = 0, *active = 1;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    current = context;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = current;
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }
CUresult cuCtxPopCurrent(CUcontext* context) {
    if (context != nullptr) *context = current;
    current = nullptr;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
    *device = 0;
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return result_of(cudaDeviceSynchronize()); }
CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    return result_of(cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value));
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    return result_of(cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)));
}

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total) { return result_of(cudaMemGetInfo(free_bytes, total)); }
CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return result_of(cudaMalloc(reinterpret_cast<void**>(address), bytes));
}
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
    return result_of(cudaMallocManaged(reinterpret_cast<void**>(address), bytes, flags));
}
CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
    return result_of(cudaMallocPitch(reinterpret_cast<void**>(address), pitch, width, height));
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
    return result_of(cudaMallocAsync(reinterpret_cast<void**>(address), bytes, stream));
}
CUresult cuMemFree(CUdeviceptr address) { return result_of(cudaFree(pointer_of(address))); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return result_of(cudaFreeAsync(pointer_of(address), stream));
}
CUresult cuMemAllocHost(void** pointer, size_t bytes) { return result_of(cudaMallocHost(pointer, bytes)); }
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    return result_of(cudaHostAlloc(pointer, bytes, flags));
}
CUresult cuMemFreeHost(void* pointer) { return result_of(cudaFreeHost(pointer)); }
CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
    return result_of(cudaHostRegister(pointer, bytes, flags));
}
CUresult cuMemHostUnregister(void* pointer) { return result_of(cudaHostUnregister(pointer)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags) {
    return result_of(cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags));
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault, stream));
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
    return result_of(cudaMemcpy(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(pointer_of(to), from, bytes, cudaMemcpyHostToDevice, stream));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost, stream));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice, stream));
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
    return result_of(cudaMemset(pointer_of(to), value, count));
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) { return result_of(fill(to, value, count)); }
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) { return result_of(fill(to, value, count)); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return result_of(cudaMemsetAsync(pointer_of(to), value, count, stream));
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return result_of(submit(stream, [=] { return fill(to, value, count); }, cudaGraphNodeTypeMemset));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return result_of(submit(stream, [=] { return fill(to, value, count); }, cudaGraphNodeTypeMemset));
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) { return result_of(cudaStreamCreateWithFlags(stream, flags)); }
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    return result_of(cudaStreamCreateWithPriority(stream, flags, priority));
}
CUresult cuStreamDestroy(CUstream stream) { return result_of(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) { return result_of(cudaStreamSynchronize(stream)); }
CUresult cuStreamQuery(CUstream stream) { return result_of(cudaStreamQuery(stream)); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return result_of(cudaStreamWaitEvent(stream, event, flags));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) { return result_of(cudaEventCreateWithFlags(event, flags)); }
CUresult cuEventDestroy(CUevent event) { return result_of(cudaEventDestroy(event)); }
CUresult cuEventRecord(CUevent event, CUstream stream) { return result_of(cudaEventRecord(event, stream)); }
CUresult cuEventSynchronize(CUevent event) { return result_of(cudaEventSynchronize(event)); }
CUresult cuEventQuery(CUevent event) { return result_of(cudaEventQuery(event)); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return result_of(cudaEventElapsedTime(milliseconds, start, end));
}

CUresult cuProfilerStart() { return result_of(cudaProfilerStart()); }
CUresult cuProfilerStop() { return result_of(cudaProfilerStop()); }

}  // extern "C"
