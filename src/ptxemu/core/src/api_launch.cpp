// What nvcc's host stubs call, kernel launches, and attributes of kernels.
#include <algorithm>
#include <vector>

#include "host_clock.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

struct CallConfiguration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

thread_local std::vector<CallConfiguration> pending_calls;

constexpr dim3 kNoCluster{0, 0, 0};

cudaError_t launch(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream,
                   bool cooperative = false, dim3 cluster = kNoCluster) {
    PreparedLaunch prepared;
    const cudaError_t error = runtime().prepare(host, grid, block, arguments, shared, cooperative, cluster, prepared);
    if (error != cudaSuccess) return error;
    if (!capture_of(stream)) return runtime().launch(prepared);
    const Content call = kernel_call(host, std::move(prepared));
    return submit(stream, work_of(call, cudaGraphNodeTypeKernel), cudaGraphNodeTypeKernel, call);
}

// What <<<>>> becomes: it drops the error, which a program only sees when it asks for the last one.
cudaError_t launch_of_stub(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
    const cudaError_t error = launch(host, grid, block, arguments, shared, stream);
    if (error != cudaSuccess && runtime().sticky() == cudaSuccess) runtime().note_refused(host, error);
    return error;
}

dim3 cluster_of(const cudaLaunchConfig_t& configuration) {
    dim3 cluster = kNoCluster;
    for (unsigned k = 0; k < configuration.numAttrs; ++k)
        if (const cudaLaunchAttribute& one = configuration.attrs[k]; one.id == cudaLaunchAttributeClusterDimension)
            cluster = {one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z};
    return cluster;
}

// The entry with its function, or null after noting the error.
KernelEntry* known_kernel(const void* host) {
    KernelEntry* entry = runtime().kernel(host);
    if (entry != nullptr && entry->function != nullptr) return entry;
    runtime().fail(cudaErrorInvalidDeviceFunction);
    return nullptr;
}

}  // namespace

extern "C" {

// The handle is the module.
void** __cudaRegisterFatBinary(void* fat_binary) {
    return reinterpret_cast<void**>(Runtime::instance().registered(fat_binary));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** module, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    runtime().register_kernel(reinterpret_cast<Module*>(module), host, name);
}
void __cudaRegisterVar(void** module, char* host, char*, const char* name, int, size_t, int, int) {
    runtime().register_variable(reinterpret_cast<Module*>(module), host, name);
}
// Host code has a pointer in the variable's place, which is its own key, too.
void __cudaRegisterManagedVar(void** module, void** host, char*, const char* name, int, size_t, int, int) {
    const Variable* const variable = runtime().register_variable(reinterpret_cast<Module*>(module), host, name);
    if (variable == nullptr) return;
    *host = reinterpret_cast<void*>(variable->address);
    runtime().register_variable(reinterpret_cast<Module*>(module), *host, name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    pending_calls.push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (pending_calls.empty()) return runtime().fail(cudaErrorMissingConfiguration);
    const CallConfiguration call = pending_calls.back();
    pending_calls.pop_back();
    *grid = call.grid;
    *block = call.block;
    *shared = call.shared;
    *static_cast<cudaStream_t*>(stream) = call.stream;
    return cudaSuccess;
}

// A kernel handle is the address of its host stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
    return launch_of_stub(kernel, grid, block, arguments, shared, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t stream) {
    return launch_of_stub(kernel, grid, block, arguments, shared, stream);
}
// Stubs of CUDA 12 call it; of those of 13 it is a call that a program makes itself, and it sees the error.
cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    return launch(host, grid, block, arguments, shared, stream);
#else
    return launch_of_stub(host, grid, block, arguments, shared, stream);
#endif
}

cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t stream) {
    return launch(host, grid, block, arguments, shared, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* host, void** arguments) {
    bool cooperative = false;
    for (unsigned k = 0; k < configuration->numAttrs; ++k)
        if (configuration->attrs[k].id == cudaLaunchAttributeCooperative)
            cooperative = configuration->attrs[k].val.cooperative != 0;
    return launch(host, configuration->gridDim, configuration->blockDim, arguments, configuration->dynamicSmemBytes,
                  configuration->stream, cooperative, cluster_of(*configuration));
}

cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
    KernelEntry* entry = known_kernel(host);
    if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) entry->large_clusters = value != 0;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    const DeviceFigures& figures = runtime().figures;
    if (value < 0 || static_cast<u64>(value) > figures.shared_per_block_optin - entry->function->static_shared)
        return runtime().fail(cudaErrorInvalidValue);
    entry->max_dynamic_shared = std::max(static_cast<u32>(value), static_cast<u32>(figures.shared_per_block));
    // What is declared statically comes on top: 48 KB by attribute may be more than 48 KB in all.
    entry->more_shared = static_cast<u64>(value) + entry->function->static_shared > figures.shared_per_block;
    return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
    const KernelEntry* entry = known_kernel(host);
    if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
    const DeviceFigures& figures = runtime().figures;
    *attributes = {};
    attributes->sharedSizeBytes = entry->function->static_shared;
    attributes->localSizeBytes = entry->function->local_bytes;
    const u64 declared = entry->function->max_threads != 0 ? entry->function->max_threads : 1024;
    const u64 holding = resident_warps(figures, entry->function->registers) * kLanes;
    attributes->maxThreadsPerBlock = static_cast<int>(std::min(declared, holding));
    attributes->numRegs = static_cast<int>(entry->function->registers);
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(entry->max_dynamic_shared);
    attributes->binaryVersion = static_cast<int>(figures.major * 10 + figures.minor);
    attributes->ptxVersion = attributes->binaryVersion;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int threads,
                                                                   size_t dynamic_shared, unsigned) {
    const KernelEntry* entry = known_kernel(host);
    if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
    if (threads <= 0) return runtime().fail(cudaErrorInvalidValue);
    const u64 shared = entry->function->static_shared + dynamic_shared;
    const u64 resident =
        resident_blocks(runtime().figures, static_cast<u64>(threads), shared, entry->function->registers);
    *blocks = threads > 1024 ? 0 : static_cast<int>(resident);
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads,
                                                          size_t dynamic_shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, dynamic_shared, 0);
}
// As many as there are groups of SMs, each for as often as one of its blocks fits on an SM.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* host, const cudaLaunchConfig_t* configuration) {
    const dim3 block = configuration->blockDim;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        clusters, host, static_cast<int>(block.x * block.y * block.z), configuration->dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    const KernelEntry& entry = *known_kernel(host);
    dim3 cluster = cluster_of(*configuration);
    const u32* required = entry.function->required_cluster;
    if (cluster.x == 0) cluster = required[0] != 0 ? dim3{required[0], required[1], required[2]} : dim3{1, 1, 1};
    const u64 blocks = u64{cluster.x} * cluster.y * cluster.z;
    if (blocks == 0 || blocks > most_cluster_blocks(runtime().figures, entry))
        return runtime().fail(cudaErrorInvalidClusterSize);
    *clusters *= static_cast<int>(runtime().figures.sm_count / blocks);
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* host, const cudaLaunchConfig_t*) {
    const KernelEntry* entry = known_kernel(host);
    if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
    *size = static_cast<int>(most_cluster_blocks(runtime().figures, *entry));
    return cudaSuccess;
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* host, int blocks, int) {
    const KernelEntry* entry = known_kernel(host);
    if (entry == nullptr) return cudaErrorInvalidDeviceFunction;
    if (blocks <= 0) return runtime().fail(cudaErrorInvalidValue);
    const u64 share = runtime().figures.shared_per_sm / static_cast<u64>(blocks) / 128 * 128;
    const u64 most = std::min(std::max<u64>(share, 1024) - 1024, runtime().figures.shared_per_block_optin);
    *bytes = most - std::min<u64>(most, entry->function->static_shared);
    return cudaSuccess;
}

// Both leave a mark: who counts a call finds out whether the program has stopped counting on its own.
cudaError_t cudaProfilerStart() {
    append_to(Settings::get().report, "{\"mark\": \"start\"}\n");
    runtime().profiling = true;
    runtime().contents.reset();
    HostClock::start();
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    report_host_work(HostClock::stop());
    runtime().profiling = false;
    append_to(Settings::get().report, "{\"mark\": \"stop\"}\n");
    return cudaSuccess;
}

}  // extern "C"
