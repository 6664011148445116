// Stand-ins for functions of the CUDA runtime that candidates may call, but not in every way, and for those of OpenMP.
// A candidate's calls are renamed to these before it is linked; those of the harness and of libraries are not. The build
// defines KB_GUARD_<function> for each that a candidate asks for, so that only what it needs must exist in the runtime.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>

namespace {

// Work on a non-blocking stream is not waited for by the default stream, on which calls are timed. Without the flag,
// the default stream waits for it; what the candidate orders by events stays as it ordered it.
[[maybe_unused]] unsigned blocking(unsigned flags) { return flags & ~static_cast<unsigned>(cudaStreamNonBlocking); }

// How the host waits for the GPU is the harness' choice, for both sides of a comparison: a host that sleeps meanwhile wakes
// late, and the clocks move apart as if the GPU had hidden work.
[[maybe_unused]] unsigned waiting_as_ever(unsigned flags) {
    unsigned now = 0;
    if (cudaGetDeviceFlags(&now) != cudaSuccess) cudaGetLastError();
    return (flags & ~static_cast<unsigned>(cudaDeviceScheduleMask)) | (now & cudaDeviceScheduleMask);
}

// What kernels with tensor maps need of the harness. Everything else has a name in the runtime, which is audited.
[[maybe_unused]] bool entry_point_allowed(const char* name) {
    static const char* const allowed[] = {
        "cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col", "cuTensorMapEncodeIm2colWide", "cuTensorMapReplaceAddress",
        "cuGetErrorString",       "cuGetErrorName",          "cuDeviceGetAttribute",        "cuDriverGetVersion",
        "cuFuncSetAttribute",     "cuFuncGetAttribute",      "cuCtxGetDevice",              "cuDeviceGet"};
    for (const char* other : allowed) {
        if (name != nullptr && std::strcmp(name, other) == 0) return true;
    }
    return false;
}

[[maybe_unused]] cudaError_t refuse(void** function, cudaDriverEntryPointQueryResult* result) {
    if (function != nullptr) *function = nullptr;
    if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
    return cudaErrorNotSupported;
}

}  // namespace

extern "C" {

#ifdef KB_GUARD_cudaStreamCreateWithFlags
cudaError_t kb_guard_cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithFlags(stream, blocking(flags));
}
#endif

#ifdef KB_GUARD_cudaStreamCreateWithPriority
cudaError_t kb_guard_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    return cudaStreamCreateWithPriority(stream, blocking(flags), priority);
}
#endif

#ifdef KB_GUARD_cudaSetDeviceFlags
cudaError_t kb_guard_cudaSetDeviceFlags(unsigned flags) { return cudaSetDeviceFlags(waiting_as_ever(flags)); }
#endif

#ifdef KB_GUARD_cudaInitDevice
cudaError_t kb_guard_cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    return cudaInitDevice(device, waiting_as_ever(device_flags), flags);
}
#endif

// OpenMP on a machine of one processor.
#ifdef KB_GUARD_omp_get_max_threads
int kb_guard_omp_get_max_threads() { return 1; }
#endif
#ifdef KB_GUARD_omp_get_num_procs
int kb_guard_omp_get_num_procs() { return 1; }
#endif
#ifdef KB_GUARD_omp_get_num_threads
int kb_guard_omp_get_num_threads() { return 1; }
#endif
#ifdef KB_GUARD_omp_get_thread_num
int kb_guard_omp_get_thread_num() { return 0; }
#endif
#ifdef KB_GUARD_omp_set_num_threads
void kb_guard_omp_set_num_threads(int) {}
#endif
#ifdef KB_GUARD_omp_get_wtime
double kb_guard_omp_get_wtime() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
#endif

#ifdef KB_GUARD_cudaGetDriverEntryPoint
cudaError_t kb_guard_cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
    return entry_point_allowed(name) ? cudaGetDriverEntryPoint(name, function, flags, result)
                                     : refuse(function, result);
}
#endif

#ifdef KB_GUARD_cudaGetDriverEntryPointByVersion
cudaError_t kb_guard_cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                                      unsigned long long flags,
                                                      cudaDriverEntryPointQueryResult* result) {
    return entry_point_allowed(name) ? cudaGetDriverEntryPointByVersion(name, function, version, flags, result)
                                     : refuse(function, result);
}
#endif

}  // extern "C"
