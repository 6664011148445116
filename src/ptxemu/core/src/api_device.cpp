// Device queries and errors.
#include <cuda.h>

#include <cstdio>
#include <iterator>
#include <optional>
#include <string>

#include "host_clock.hpp"
#include "runtime.hpp"

namespace {

using namespace ptxemu;

// Limits as a program has set them, from the defaults of a GPU; local memory and the output of printf have none here,
// and no line persists in L2.
size_t stack_bytes = 1024, printf_bytes = 1 << 20, persisting_bytes = 0;

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
    {cudaErrorOperatingSystem, "cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& text_of(cudaError_t error) {
    for (const ErrorText& one : kErrors)
        if (one.error == error) return one;
    return kErrors[std::size(kErrors) - 1];
}

// What follows from the figures of the GPU, and what the emulator does; else what is known of the GPU.
std::optional<int> value_of(int attribute) {
    const DeviceFigures& figures = runtime().figures;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: return 1024;
        case cudaDevAttrMaxBlockDimX: return 1024;
        case cudaDevAttrMaxBlockDimY: return 1024;
        case cudaDevAttrMaxBlockDimZ: return 64;
        case cudaDevAttrMaxGridDimX: return 0x7fffffff;
        case cudaDevAttrMaxGridDimY: return 65535;
        case cudaDevAttrMaxGridDimZ: return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock: return as_int(figures.shared_per_block);
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return as_int(figures.shared_per_block_optin);
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return as_int(figures.shared_per_sm);
        case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
        case cudaDevAttrWarpSize: return kLanes;
        case cudaDevAttrMaxRegistersPerBlock: return 65536;
        case cudaDevAttrMaxRegistersPerMultiprocessor: return as_int(figures.registers_per_sm);
        case cudaDevAttrMultiProcessorCount: return as_int(figures.sm_count);
        case cudaDevAttrMaxThreadsPerMultiProcessor: return as_int(figures.threads_per_sm);
        case cudaDevAttrMaxBlocksPerMultiprocessor: return as_int(figures.blocks_per_sm);
        case cudaDevAttrClockRate: return as_int(figures.clock_khz);
        case cudaDevAttrL2CacheSize: return as_int(figures.l2_bytes);
        case cudaDevAttrComputeCapabilityMajor: return as_int(figures.major);
        case cudaDevAttrComputeCapabilityMinor: return as_int(figures.minor);
        case cudaDevAttrTotalConstantMemory: return 65536;
        case cudaDevAttrMaxPitch: return 0x7fffffff;
        case cudaDevAttrTextureAlignment: return 512;
        case cudaDevAttrComputeMode: return cudaComputeModeDefault;
        case cudaDevAttrClusterLaunch: return figures.major >= 9;
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrMemoryPoolsSupported:
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrComputePreemptionSupported:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrConcurrentManagedAccess:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrGlobalL1CacheSupported:
        case cudaDevAttrLocalL1CacheSupported:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrHostRegisterSupported:
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
        case cudaDevAttrGpuOverlap: return 1;
        case cudaDevAttrIntegrated:
        case cudaDevAttrPageableMemoryAccess:
        case cudaDevAttrMultiGpuBoardGroupID:
        case cudaDevAttrHostNativeAtomicSupported:
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrIsMultiGpuBoard: return 0;
        default: {
            const auto found = figures.attributes.find(attribute);
            return found == figures.attributes.end() ? std::nullopt : found->second.value;
        }
    }
}

struct Member {
    int cudaDeviceProp::*to;
    cudaDeviceAttr attribute;
};

#define MEMBER(member, attribute) {&cudaDeviceProp::member, cudaDevAttr##attribute}
constexpr Member kMembers[] = {
    MEMBER(regsPerBlock, MaxRegistersPerBlock),
    MEMBER(warpSize, WarpSize),
    MEMBER(maxThreadsPerBlock, MaxThreadsPerBlock),
    MEMBER(major, ComputeCapabilityMajor),
    MEMBER(minor, ComputeCapabilityMinor),
    MEMBER(multiProcessorCount, MultiProcessorCount),
    MEMBER(integrated, Integrated),
    MEMBER(canMapHostMemory, CanMapHostMemory),
    MEMBER(maxTexture1D, MaxTexture1DWidth),
    MEMBER(maxTexture1DMipmap, MaxTexture1DMipmappedWidth),
    MEMBER(maxTextureCubemap, MaxTextureCubemapWidth),
    MEMBER(maxSurface1D, MaxSurface1DWidth),
    MEMBER(maxSurfaceCubemap, MaxSurfaceCubemapWidth),
    MEMBER(concurrentKernels, ConcurrentKernels),
    MEMBER(ECCEnabled, EccEnabled),
    MEMBER(pciBusID, PciBusId),
    MEMBER(pciDeviceID, PciDeviceId),
    MEMBER(pciDomainID, PciDomainId),
    MEMBER(tccDriver, TccDriver),
    MEMBER(asyncEngineCount, AsyncEngineCount),
    MEMBER(unifiedAddressing, UnifiedAddressing),
    MEMBER(memoryBusWidth, GlobalMemoryBusWidth),
    MEMBER(l2CacheSize, L2CacheSize),
    MEMBER(persistingL2CacheMaxSize, MaxPersistingL2CacheSize),
    MEMBER(maxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor),
    MEMBER(streamPrioritiesSupported, StreamPrioritiesSupported),
    MEMBER(globalL1CacheSupported, GlobalL1CacheSupported),
    MEMBER(localL1CacheSupported, LocalL1CacheSupported),
    MEMBER(regsPerMultiprocessor, MaxRegistersPerMultiprocessor),
    MEMBER(managedMemory, ManagedMemory),
    MEMBER(isMultiGpuBoard, IsMultiGpuBoard),
    MEMBER(multiGpuBoardGroupID, MultiGpuBoardGroupID),
    MEMBER(hostNativeAtomicSupported, HostNativeAtomicSupported),
    MEMBER(pageableMemoryAccess, PageableMemoryAccess),
    MEMBER(concurrentManagedAccess, ConcurrentManagedAccess),
    MEMBER(computePreemptionSupported, ComputePreemptionSupported),
    MEMBER(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem),
    MEMBER(cooperativeLaunch, CooperativeLaunch),
    MEMBER(pageableMemoryAccessUsesHostPageTables, PageableMemoryAccessUsesHostPageTables),
    MEMBER(directManagedMemAccessFromHost, DirectManagedMemAccessFromHost),
    MEMBER(maxBlocksPerMultiProcessor, MaxBlocksPerMultiprocessor),
    MEMBER(accessPolicyMaxWindowSize, MaxAccessPolicyWindowSize),
    MEMBER(hostRegisterSupported, HostRegisterSupported),
    MEMBER(sparseCudaArraySupported, SparseCudaArraySupported),
    MEMBER(memoryPoolsSupported, MemoryPoolsSupported),
    MEMBER(gpuDirectRDMASupported, GPUDirectRDMASupported),
    MEMBER(gpuDirectRDMAWritesOrdering, GPUDirectRDMAWritesOrdering),
    MEMBER(deferredMappingCudaArraySupported, DeferredMappingCudaArraySupported),
    MEMBER(ipcEventSupported, IpcEventSupport),
    MEMBER(clusterLaunch, ClusterLaunch),
#if CUDART_VERSION >= 13000
    MEMBER(deviceNumaConfig, NumaConfig),
    MEMBER(mpsEnabled, MpsEnabled),
    MEMBER(hostNumaId, HostNumaId),
#else
    MEMBER(clockRate, ClockRate),
    MEMBER(memoryClockRate, MemoryClockRate),
    MEMBER(deviceOverlap, GpuOverlap),
    MEMBER(kernelExecTimeoutEnabled, KernelExecTimeout),
    MEMBER(computeMode, ComputeMode),
    MEMBER(maxTexture1DLinear, MaxTexture1DLinearWidth),
    MEMBER(singleToDoublePrecisionPerfRatio, SingleToDoublePrecisionPerfRatio),
#endif
};
#undef MEMBER

int known_or_zero(int attribute) { return value_of(attribute).value_or(0); }

// Attributes with the numbers that follow each other from the first.
template <size_t N>
void fill(int (&to)[N], cudaDeviceAttr first) {
    for (size_t k = 0; k < N; ++k) to[k] = known_or_zero(first + static_cast<int>(k));
}

size_t known_size(cudaDeviceAttr attribute) { return static_cast<size_t>(known_or_zero(attribute)); }

// A member for which no source is known is 0: there is no way to refuse one alone.
void describe(cudaDeviceProp& properties) {
    const DeviceFigures& figures = runtime().figures;
    properties = {};
    std::snprintf(properties.name, sizeof properties.name, "%s", figures.name.c_str());
    properties.totalGlobalMem = figures.memory_bytes;
    for (const Member& one : kMembers) properties.*one.to = known_or_zero(one.attribute);
    properties.sharedMemPerBlock = known_size(cudaDevAttrMaxSharedMemoryPerBlock);
    properties.sharedMemPerBlockOptin = known_size(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    properties.sharedMemPerMultiprocessor = known_size(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    properties.reservedSharedMemPerBlock = known_size(cudaDevAttrReservedSharedMemoryPerBlock);
    properties.totalConstMem = known_size(cudaDevAttrTotalConstantMemory);
    properties.memPitch = known_size(cudaDevAttrMaxPitch);
    properties.textureAlignment = known_size(cudaDevAttrTextureAlignment);
    properties.texturePitchAlignment = known_size(cudaDevAttrTexturePitchAlignment);
    properties.surfaceAlignment = known_size(cudaDevAttrSurfaceAlignment);
    properties.gpuDirectRDMAFlushWritesOptions = static_cast<unsigned>(known_or_zero(cudaDevAttrGPUDirectRDMAFlushWritesOptions));
    properties.memoryPoolSupportedHandleTypes = static_cast<unsigned>(known_or_zero(cudaDevAttrMemoryPoolSupportedHandleTypes));
#if CUDART_VERSION >= 13000
    properties.unifiedFunctionPointers = known_or_zero(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
    properties.gpuPciDeviceID = static_cast<unsigned>(known_or_zero(cudaDevAttrGpuPciDeviceId));
    properties.gpuPciSubsystemID = static_cast<unsigned>(known_or_zero(cudaDevAttrGpuPciSubsystemId));
#endif
    fill(properties.maxThreadsDim, cudaDevAttrMaxBlockDimX);
    fill(properties.maxGridSize, cudaDevAttrMaxGridDimX);
    fill(properties.maxTexture2D, cudaDevAttrMaxTexture2DWidth);
    fill(properties.maxTexture2DMipmap, cudaDevAttrMaxTexture2DMipmappedWidth);
    fill(properties.maxTexture2DLinear, cudaDevAttrMaxTexture2DLinearWidth);
    fill(properties.maxTexture2DGather, cudaDevAttrMaxTexture2DGatherWidth);
    fill(properties.maxTexture3D, cudaDevAttrMaxTexture3DWidth);
    fill(properties.maxTexture3DAlt, cudaDevAttrMaxTexture3DWidthAlt);
    fill(properties.maxTexture1DLayered, cudaDevAttrMaxTexture1DLayeredWidth);
    fill(properties.maxTexture2DLayered, cudaDevAttrMaxTexture2DLayeredWidth);
    fill(properties.maxTextureCubemapLayered, cudaDevAttrMaxTextureCubemapLayeredWidth);
    fill(properties.maxSurface2D, cudaDevAttrMaxSurface2DWidth);
    fill(properties.maxSurface3D, cudaDevAttrMaxSurface3DWidth);
    fill(properties.maxSurface1DLayered, cudaDevAttrMaxSurface1DLayeredWidth);
    fill(properties.maxSurface2DLayered, cudaDevAttrMaxSurface2DLayeredWidth);
    fill(properties.maxSurfaceCubemapLayered, cudaDevAttrMaxSurfaceCubemapLayeredWidth);
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
    if (value == nullptr || attribute < 1 || attribute >= static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX)) return runtime().fail(cudaErrorInvalidValue);
    if (const std::optional<int> known = value_of(attribute)) {
        *value = *known;
        return cudaSuccess;
    }
    const auto& named = runtime().figures.attributes;
    const auto found = named.find(attribute);
    return runtime().lacks("device attribute " + std::to_string(static_cast<int>(attribute)) + (found == named.end() ? "" : " (" + found->second.name + ")"));
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
cudaError_t cudaDeviceSynchronize() {
    HostClock::synchronized();
    return runtime().fail(runtime().sticky());
}
cudaError_t cudaDeviceReset() { return runtime().sticky(); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    if (limit == cudaLimitStackSize) stack_bytes = value;
    if (limit == cudaLimitPrintfFifoSize) printf_bytes = value;
    if (limit == cudaLimitPersistingL2CacheSize) persisting_bytes = value;
    if (limit != cudaLimitMallocHeapSize || runtime().heap.resize(value)) return cudaSuccess;
    return runtime().fail(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    switch (limit) {
        case cudaLimitStackSize: *value = stack_bytes; break;
        case cudaLimitPrintfFifoSize: *value = printf_bytes; break;
        case cudaLimitPersistingL2CacheSize: *value = persisting_bytes; break;
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
