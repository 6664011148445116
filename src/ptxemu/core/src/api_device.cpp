// Device queries and errors.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "runtime.hpp"

namespace {

using namespace ptxemu;

int as_int(u64 value) { return static_cast<int>(value); }

struct ErrorText {
    cudaError_t error;
    const char* name;
    const char* description;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration", "kernel launched without a configuration"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the stream in which it began"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", "invalid cluster size"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& text_of(cudaError_t error) {
    for (const ErrorText& one : kErrors)
        if (one.error == error) return one;
    return kErrors[std::size(kErrors) - 1];
}

void describe(cudaDeviceProp& properties) {
    const DeviceFigures& figures = runtime().figures;
    properties = {};
    std::snprintf(properties.name, sizeof properties.name, "%s", figures.name.c_str());
    properties.major = as_int(figures.major);
    properties.minor = as_int(figures.minor);
    properties.multiProcessorCount = as_int(figures.sm_count);
    properties.totalGlobalMem = figures.memory_bytes;
    properties.sharedMemPerBlock = figures.shared_per_block;
    properties.sharedMemPerBlockOptin = figures.shared_per_block_optin;
    properties.sharedMemPerMultiprocessor = figures.shared_per_sm;
    properties.reservedSharedMemPerBlock = 1024;
    properties.regsPerBlock = 65536;
    properties.regsPerMultiprocessor = as_int(figures.registers_per_sm);
    properties.warpSize = kLanes;
    properties.maxThreadsPerBlock = 1024;
    properties.maxThreadsPerMultiProcessor = as_int(figures.threads_per_sm);
    properties.maxBlocksPerMultiProcessor = as_int(figures.blocks_per_sm);
    const int block[] = {1024, 1024, 64}, grid[] = {0x7fffffff, 65535, 65535};
    std::copy_n(block, 3, properties.maxThreadsDim);
    std::copy_n(grid, 3, properties.maxGridSize);
    properties.totalConstMem = 65536;
    properties.l2CacheSize = as_int(figures.l2_bytes);
    properties.persistingL2CacheMaxSize = as_int(figures.l2_bytes / 8 * 5);
    properties.memoryBusWidth = as_int(figures.memory_bus_bits);
    properties.memPitch = 0x7fffffff;
    properties.textureAlignment = 512;
    properties.globalL1CacheSupported = properties.localL1CacheSupported = 1;
    properties.canMapHostMemory = properties.concurrentKernels = properties.unifiedAddressing = properties.cooperativeLaunch = 1;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device != 0) return runtime().fail(cudaErrorInvalidDevice);
    describe(*properties);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (device != 0) return runtime().fail(cudaErrorInvalidDevice);
    const DeviceFigures& figures = runtime().figures;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
        case cudaDevAttrMaxBlockDimX: *value = 1024; break;
        case cudaDevAttrMaxBlockDimY: *value = 1024; break;
        case cudaDevAttrMaxBlockDimZ: *value = 64; break;
        case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
        case cudaDevAttrMaxGridDimY: *value = 65535; break;
        case cudaDevAttrMaxGridDimZ: *value = 65535; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = as_int(figures.shared_per_block); break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = as_int(figures.shared_per_block_optin); break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = as_int(figures.shared_per_sm); break;
        case cudaDevAttrReservedSharedMemoryPerBlock: *value = 1024; break;
        case cudaDevAttrWarpSize: *value = kLanes; break;
        case cudaDevAttrMaxRegistersPerBlock: *value = 65536; break;
        case cudaDevAttrMaxRegistersPerMultiprocessor: *value = as_int(figures.registers_per_sm); break;
        case cudaDevAttrMultiProcessorCount: *value = as_int(figures.sm_count); break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = as_int(figures.threads_per_sm); break;
        case cudaDevAttrMaxBlocksPerMultiprocessor: *value = as_int(figures.blocks_per_sm); break;
        case cudaDevAttrClockRate: *value = as_int(figures.clock_khz); break;
        case cudaDevAttrMemoryClockRate: *value = as_int(figures.memory_clock_khz); break;
        case cudaDevAttrGlobalMemoryBusWidth: *value = as_int(figures.memory_bus_bits); break;
        case cudaDevAttrL2CacheSize: *value = as_int(figures.l2_bytes); break;
        case cudaDevAttrMaxPersistingL2CacheSize: *value = as_int(figures.l2_bytes / 8 * 5); break;
        case cudaDevAttrComputeCapabilityMajor: *value = as_int(figures.major); break;
        case cudaDevAttrComputeCapabilityMinor: *value = as_int(figures.minor); break;
        case cudaDevAttrTotalConstantMemory: *value = 65536; break;
        case cudaDevAttrConcurrentKernels: *value = 1; break;
        case cudaDevAttrUnifiedAddressing: *value = 1; break;
        case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
        case cudaDevAttrCooperativeLaunch: *value = 1; break;
        case cudaDevAttrClusterLaunch: *value = figures.major >= 9; break;
        case cudaDevAttrIntegrated: *value = 0; break;
        case cudaDevAttrComputeMode: *value = cudaComputeModeDefault; break;
        case cudaDevAttrComputePreemptionSupported: *value = 1; break;
        case cudaDevAttrManagedMemory: *value = 1; break;
        case cudaDevAttrConcurrentManagedAccess: *value = 0; break;
        case cudaDevAttrPageableMemoryAccess: *value = 0; break;
        case cudaDevAttrStreamPrioritiesSupported: *value = 0; break;
        case cudaDevAttrGlobalL1CacheSupported: *value = 1; break;
        case cudaDevAttrLocalL1CacheSupported: *value = 1; break;
        case cudaDevAttrAsyncEngineCount: *value = 0; break;
        case cudaDevAttrMultiGpuBoardGroupID: *value = 0; break;
        case cudaDevAttrMaxAccessPolicyWindowSize: *value = as_int(figures.l2_bytes / 8 * 5); break;
        case cudaDevAttrCanMapHostMemory: *value = 1; break;
        case cudaDevAttrHostRegisterSupported: *value = 1; break;
        case cudaDevAttrCanUseHostPointerForRegisteredMem: *value = 1; break;
        case cudaDevAttrHostNativeAtomicSupported: *value = 0; break;
        case cudaDevAttrGpuOverlap: *value = 0; break;
        case cudaDevAttrKernelExecTimeout: *value = 0; break;
        case cudaDevAttrIsMultiGpuBoard: *value = 0; break;
        case cudaDevAttrMaxPitch: *value = 0x7fffffff; break;
        case cudaDevAttrTextureAlignment: *value = 512; break;
        default:
            return runtime().lacks("device attribute " + std::to_string(static_cast<int>(attribute)));
    }
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return runtime().fail(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaDeviceSynchronize() { return runtime().fail(runtime().sticky()); }
cudaError_t cudaDeviceReset() { return runtime().sticky(); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    if (limit != cudaLimitMallocHeapSize || runtime().heap.resize(value)) return cudaSuccess;
    return runtime().fail(cudaErrorInvalidValue);
}
// The defaults of a GPU; local memory and the output of printf have no limit here.
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    switch (limit) {
        case cudaLimitStackSize: *value = 1024; break;
        case cudaLimitPrintfFifoSize: *value = 1 << 20; break;
        case cudaLimitMallocHeapSize: *value = runtime().heap.bytes(); break;
        default: return runtime().lacks("device limit " + std::to_string(static_cast<int>(limit)));
    }
    return cudaSuccess;
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
    *flags = cudaDeviceScheduleAuto;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

cudaError_t cudaGetLastError() { return runtime().take_last(); }
cudaError_t cudaPeekAtLastError() { return runtime().peek_last(); }
const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text_of(error).description; }

}  // extern "C"
