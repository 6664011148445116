// What the functions of the CUDA driver share. They are the runtime's in other words: contexts are one and the same, a
// stream, event or graph of one is a stream, event or graph of the other, and so are kernels.
#pragma once

#include <cuda.h>

#include "runtime.hpp"

namespace ptxemu {

// Most errors of the runtime have the numbers of the driver's.
inline CUresult result_of(cudaError_t error) {
    switch (error) {
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidPitchValue:
        case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
        case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
        case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
        default: return static_cast<CUresult>(error);
    }
}

inline CUresult lacks_in_driver(const std::string& what) {
    Runtime::instance().lacks(what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

// Arguments in one buffer, as pointers to each. False when it is too short.
bool unpack(const KernelEntry& kernel, void** extra, std::vector<void*>& arguments);

inline void* pointer_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
inline const void* handle_of(CUfunction function) { return reinterpret_cast<const void*>(function); }

}  // namespace ptxemu
