// What programs with self-checking drivers ask of the CUDA runtime beyond tests/devices/host_cudart.cpp.
#include <cuda_runtime_api.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>

namespace {
// Every tensor is an allocation of its own, and its pointer the beginning of it.
int address_range(char** at, size_t* bytes, const void* pointer) {
    if (std::getenv("HOST_NO_RANGES")) return 1;
    *at = static_cast<char*>(const_cast<void*>(pointer));
    *bytes = ::malloc_usable_size(*at);
    return 0;
}
}  // namespace

extern "C" {
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
    const bool known = std::strcmp(name, "cuMemGetAddressRange") == 0;
    *function = known ? reinterpret_cast<void*>(&address_range) : nullptr;
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
}
