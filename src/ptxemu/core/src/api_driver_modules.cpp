// The CUDA driver: modules that programs load while they run, and launches of their kernels.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "driver.hpp"
#include "host_clock.hpp"
#include "loader.hpp"

namespace ptxemu {

bool unpack(const KernelEntry& kernel, void** extra, std::vector<void*>& arguments) {
    char* buffer = nullptr;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<char*>(extra[1]);
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
    }
    for (const Parameter& one : kernel.function->parameters) {
        if (buffer == nullptr || one.offset + one.size > bytes) return false;
        arguments.push_back(buffer + one.offset);
    }
    return true;
}

}  // namespace ptxemu

namespace {

using namespace ptxemu;

constexpr char kElf[] = "\x7f" "ELF";
constexpr u32 kFatBinary = 0xba55ed50;

bool is_machine_code(const char* image) {
    u32 magic = 0;
    std::memcpy(&magic, image, sizeof magic);
    return std::memcmp(image, kElf, 4) == 0 || magic == kFatBinary || magic == 0x466243b1;
}

// What a just-in-time compilation is told where to write its messages.
void tell(const std::string& message, unsigned count, const CUjit_option* options, void** values) {
    size_t room = 0;
    char* to = nullptr;
    for (unsigned k = 0; k < count; ++k) {
        if (options[k] == CU_JIT_ERROR_LOG_BUFFER) to = static_cast<char*>(values[k]);
        if (options[k] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) room = reinterpret_cast<size_t>(values[k]);
    }
    if (to != nullptr && room != 0) std::snprintf(to, room, "%s", message.c_str());
}

CUresult load(Module** module, const std::string& ptx, unsigned count, const CUjit_option* options, void** values) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
    if (runtime().sticky() != cudaSuccess) return result_of(runtime().sticky());
    const LoadedText text = assemble(ptx);
    tell(text.message, count, options, values);
    switch (text.outcome) {
        case Loading::no_loader: return lacks_in_driver("a module that is loaded at run time (" + text.message + ")");
        case Loading::not_emulatable: return lacks_in_driver("a module with " + text.message);
        case Loading::refused_by_ptxas:
            std::fprintf(stderr, "ptxcudart: %s\n", text.message.c_str());
            return CUDA_ERROR_INVALID_PTX;
        case Loading::done: break;
    }
    try {
        *module = &runtime().load(text.module);
    } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "ptxcudart: %s: %s\n", text.module.c_str(), error.what());
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

CUresult load_image(Module** module, const void* image, unsigned count, const CUjit_option* options, void** values) {
    const char* text = static_cast<const char*>(image);
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (is_machine_code(text)) return lacks_in_driver("a module of machine code (load its PTX)");
    return load(module, text, count, options, values);
}

CUresult load_file(Module** module, const char* path, unsigned count, const CUjit_option* options, void** values) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    const std::string content(std::istreambuf_iterator<char>(file), {});
    return load_image(module, content.c_str(), count, options, values);
}

// The kernel's handle; null when there is no such module or kernel.
const void* find_kernel(const void* module, const char* name) {
    const Module* found = runtime().loaded(module);
    return found == nullptr ? nullptr : runtime().handle_of(*found, name);
}

CUresult find_variable(CUdeviceptr* address, size_t* bytes, const void* module, const char* name) {
    Module* found = runtime().loaded(module);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const Variable* variable = found->find_variable(name);
    if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = variable->address;
    if (bytes != nullptr) *bytes = variable->size;
    return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig& config, CUfunction function, void** parameters, void** extra) {
    const KernelEntry* kernel = runtime().kernel(handle_of(function));
    if (kernel == nullptr || kernel->function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<void*> arguments;
    if (parameters == nullptr && !kernel->function->parameters.empty()) {
        if (extra == nullptr || !unpack(*kernel, extra, arguments)) return CUDA_ERROR_INVALID_VALUE;
        parameters = arguments.data();
    }
    cudaLaunchConfig_t given{};
    given.gridDim = {config.gridDimX, config.gridDimY, config.gridDimZ};
    given.blockDim = {config.blockDimX, config.blockDimY, config.blockDimZ};
    given.dynamicSmemBytes = config.sharedMemBytes;
    given.stream = config.hStream;
    // The attributes of both are laid out alike.
    given.attrs = reinterpret_cast<cudaLaunchAttribute*>(config.attrs);
    given.numAttrs = config.numAttrs;
    return result_of(cudaLaunchKernelExC(&given, handle_of(function), parameters));
}

CUresult attribute_of(int* value, CUfunction_attribute attribute, const void* handle) {
    cudaFuncAttributes all;
    if (const cudaError_t error = cudaFuncGetAttributes(&all, handle)) return result_of(error);
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = all.maxThreadsPerBlock; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(all.sharedSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(all.constSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(all.localSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = all.numRegs; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = all.ptxVersion; break;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = all.binaryVersion; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = all.maxDynamicSharedSizeBytes; break;
        default: return lacks_in_driver("function attribute " + std::to_string(attribute));
    }
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return load_image(reinterpret_cast<Module**>(module), image, 0, nullptr, nullptr);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
    return load_image(reinterpret_cast<Module**>(module), image, count, options, values);
}
CUresult cuModuleLoad(CUmodule* module, const char* path) {
    return load_file(reinterpret_cast<Module**>(module), path, 0, nullptr, nullptr);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }
CUresult cuModuleUnload(CUmodule module) {
    return runtime().unload(reinterpret_cast<Module*>(module)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    if (runtime().loaded(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const void* handle = find_kernel(module, name);
    *function = reinterpret_cast<CUfunction>(const_cast<void*>(handle));
    return handle != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    return find_variable(address, bytes, module, name);
}

// A library is a module, and a kernel of it a function.
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values, unsigned count,
                           CUlibraryOption*, void**, unsigned) {
    return load_image(reinterpret_cast<Module**>(library), image, count, options, values);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                               unsigned count, CUlibraryOption*, void**, unsigned) {
    return load_file(reinterpret_cast<Module**>(library), path, count, options, values);
}
CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(reinterpret_cast<CUmodule>(library)); }
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    return cuModuleGetFunction(reinterpret_cast<CUfunction*>(kernel), reinterpret_cast<CUmodule>(library), name);
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
    return find_variable(address, bytes, library, name);
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                        void** extra) {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0};
    return launch(config, function, parameters, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    return launch(*config, function, parameters, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void** parameters) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, &attribute, 1};
    return launch(config, function, parameters, nullptr);
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    return result_of(cudaLaunchHostFunc(stream, function, data));
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    return attribute_of(value, attribute, handle_of(function));
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    const bool shared = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const bool large = attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    const cudaFuncAttribute same = shared  ? cudaFuncAttributeMaxDynamicSharedMemorySize
                                   : large ? cudaFuncAttributeNonPortableClusterSizeAllowed
                                           : cudaFuncAttributePreferredSharedMemoryCarveout;
    return result_of(cudaFuncSetAttribute(handle_of(function), same, value));
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuFuncGetName(const char** name, CUfunction function) {
    const KernelEntry* kernel = runtime().kernel(handle_of(function));
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name.c_str();
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t shared) {
    return result_of(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle_of(function), threads, shared));
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host) {
    *function = reinterpret_cast<cudaFunction_t>(const_cast<void*>(host));
    return runtime().kernel(host) != nullptr ? cudaSuccess : runtime().fail(cudaErrorInvalidDeviceFunction);
}

}  // extern "C"
