// A kernel that does nothing, for a profiler to begin with: it prepares its counters at the first kernel it profiles,
// which takes it longer than to profile the second.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>

// Declared here because some CUDA distributions ship the runtime without cuda_profiler_api.h.
extern "C" cudaError_t CUDARTAPI cudaProfilerStart(void);
extern "C" cudaError_t CUDARTAPI cudaProfilerStop(void);

namespace kb {

// What the GPU driver is asked for, by the signatures of its API reference, with its opaque handles as `void*`.
class ProfilerWarmup {
   public:
    // Whether the kernel has run between profiler marks. Where it cannot, the first profile takes longer, no more.
    bool run() {
        void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (driver == nullptr) return false;
        void *module = nullptr, *kernel = nullptr;
        const bool found = call<int (*)(void**, const void*)>(driver, "cuModuleLoadData", &module, kSource) &&
                           call<int (*)(void**, void*, const char*)>(driver, "cuModuleGetFunction", &kernel, module,
                                                                     "kb_warmup");
        const bool done = found && profiled(driver, kernel);
        if (module != nullptr) call<int (*)(void*)>(driver, "cuModuleUnload", module);
        ::dlclose(driver);
        return done;
    }

   private:
    using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                           void**);

    bool profiled(void* driver, void* kernel) {
        cudaProfilerStart();
        const bool launched =
            call<Launch>(driver, "cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) &&
            cudaDeviceSynchronize() == cudaSuccess;
        cudaProfilerStop();
        return launched;
    }

    template <typename Function, typename... Arguments>
    static bool call(void* driver, const char* name, Arguments... arguments) {
        const auto function = reinterpret_cast<Function>(::dlsym(driver, name));
        return function != nullptr && function(arguments...) == 0;
    }

    static constexpr const char* kSource =
        ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry kb_warmup() { ret; }\n";
};

}  // namespace kb
