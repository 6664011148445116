// Questions and hints whose answer is simple where there is one device whose memory the host reaches: peers, where managed
// memory should be, pools, banks of shared memory.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "streams.hpp"

namespace {

using namespace ptxemu;

// What the attributes say of the place on the PCI bus; 0 where that is not known.
std::string bus_id() {
    const auto part = [](cudaDeviceAttr attribute) {
        const auto found = runtime().figures.attributes.find(attribute);
        return found == runtime().figures.attributes.end() ? 0 : found->second.value.value_or(0);
    };
    char id[32];
    std::snprintf(id, sizeof id, "%04x:%02x:%02x.0", part(cudaDevAttrPciDomainId), part(cudaDevAttrPciBusId), part(cudaDevAttrPciDeviceId));
    return id;
}

// Hints on memory change nothing; memory that is none of the device's is refused.
cudaError_t hint(const void* pointer, size_t bytes) {
    const bool held = runtime().arena.holds(reinterpret_cast<u64>(pointer), bytes);
    return held && bytes != 0 ? cudaSuccess : runtime().fail(cudaErrorInvalidValue);
}

cudaError_t only_device(int device) { return runtime().fail(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }

}  // namespace

extern "C" {

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t) {
    return hint(pointer, bytes);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
    return hint(pointer, bytes);
}
#else
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int, cudaStream_t) { return hint(pointer, bytes); }
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, int) { return hint(pointer, bytes); }
#endif
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) { return cudaSuccess; }

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetValidDevices(int*, int) { return cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* id, int room, int device) {
    const std::string own = bus_id();
    if (room <= static_cast<int>(own.size())) return runtime().fail(cudaErrorInvalidValue);
    std::memcpy(id, own.c_str(), own.size() + 1);
    return only_device(device);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
    *device = 0;
    return runtime().fail(id == bus_id() ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = 0;
    return device == 0 ? only_device(peer) : only_device(device);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return runtime().fail(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return runtime().fail(cudaErrorInvalidDevice); }
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    if (to_device != 0 || from_device != 0) return runtime().fail(cudaErrorInvalidDevice);
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}

// All pools are one, see cudaDeviceGetDefaultMemPool.
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) { return cudaDeviceGetDefaultMemPool(pool, 0); }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t) { return only_device(device); }

// Banks of shared memory have four bytes on all GPUs that are emulated, whatever is asked for.
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
    *flags = cudaHostAllocMapped;
    const bool pinned = runtime().host_memory.holds(reinterpret_cast<u64>(host), 0);
    return pinned ? cudaSuccess : runtime().fail(cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetName(const char** name, const void* host) {
    const KernelEntry* kernel = runtime().kernel(host);
    if (kernel == nullptr) return runtime().fail(cudaErrorInvalidDeviceFunction);
    *name = kernel->name.c_str();
    return cudaSuccess;
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
    return runtime().kernel(host) != nullptr ? cudaSuccess : runtime().fail(cudaErrorInvalidDeviceFunction);
}

#if CUDART_VERSION >= 12080
// Libraries are those of the driver; its errors have the runtime's numbers.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
    return static_cast<cudaError_t>(cuLibraryLoadData(reinterpret_cast<CUlibrary*>(library), code, nullptr, nullptr, 0,
                                                      nullptr, nullptr, 0));
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
    return static_cast<cudaError_t>(cuLibraryLoadFromFile(reinterpret_cast<CUlibrary*>(library), file, nullptr, nullptr,
                                                          0, nullptr, nullptr, 0));
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    return static_cast<cudaError_t>(
        cuLibraryGetKernel(reinterpret_cast<CUkernel*>(kernel), reinterpret_cast<CUlibrary>(library), name));
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
    return static_cast<cudaError_t>(cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(address), bytes,
                                                       reinterpret_cast<CUlibrary>(library), name));
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return static_cast<cudaError_t>(cuLibraryUnload(reinterpret_cast<CUlibrary>(library)));
}
#endif

}  // extern "C"
