// What the device answers for each attribute, by the runtime and by the driver, and its properties; or one attribute alone.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

void ask(int number) {
    int by_runtime = -1, by_driver = -1;
    const cudaError_t error = cudaDeviceGetAttribute(&by_runtime, static_cast<cudaDeviceAttr>(number), 0);
    const CUresult result = cuDeviceGetAttribute(&by_driver, static_cast<CUdevice_attribute>(number), 0);
    std::printf("attribute %d %d %d %d %d\n", number, error, by_runtime, result, by_driver);
}

int main(int count, char** words) {
    cuInit(0);
    if (count > 1) {
        ask(std::atoi(words[1]));
        return 0;
    }
    for (int number = 1; number < CU_DEVICE_ATTRIBUTE_MAX; ++number) ask(number);
    cudaDeviceProp all;
    cudaGetDeviceProperties(&all, 0);
    char id[32];
    int domain, bus, device;
    cudaDeviceGetPCIBusId(id, sizeof id, 0);
    std::sscanf(id, "%x:%x:%x", &domain, &bus, &device);
    std::printf("property pci_domain_id %d\nproperty pci_bus_id %d\nproperty pci_device_id %d\n", domain, bus, device);
    size_t bytes;
    cudaDeviceSetLimit(cudaLimitStackSize, 4096);
    cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 8192);
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) != cudaSuccess || bytes != 0) return 1;
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) != cudaSuccess || bytes != 1 << 20) return 1;
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
    if (cudaDeviceGetLimit(&bytes, cudaLimitStackSize) != cudaSuccess || bytes != 4096) return 1;
    if (cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize) != cudaSuccess || bytes != 8192) return 1;
    cuDeviceTotalMem(&bytes, 0);
    std::printf("property total_memory %zu\nproperty total_memory %zu\n", all.totalGlobalMem, bytes);
    std::printf("property multiprocessor_count %d\n", all.multiProcessorCount);
    std::printf("property global_memory_bus_width %d\n", all.memoryBusWidth);
    std::printf("property l2_cache_size %d\n", all.l2CacheSize);
    std::printf("property max_persisting_l2_cache_size %d\n", all.persistingL2CacheMaxSize);
    std::printf("property max_access_policy_window_size %d\n", all.accessPolicyMaxWindowSize);
    std::printf("property max_shared_memory_per_block_optin %zu\n", all.sharedMemPerBlockOptin);
    std::printf("property async_engine_count %d\n", all.asyncEngineCount);
    std::printf("property ecc_enabled %d\n", all.ECCEnabled);
    std::printf("property texture_pitch_alignment %zu\n", all.texturePitchAlignment);
    std::printf("property maximum_texture2d_linear_pitch %d\n", all.maxTexture2DLinear[2]);
    std::printf("property maximum_texture3d_depth_alternate %d\n", all.maxTexture3DAlt[2]);
    std::printf("property maximum_surface2d_layered_layers %d\n", all.maxSurface2DLayered[2]);
    std::printf("property mempool_supported_handle_types %u\n", all.memoryPoolSupportedHandleTypes);
}
