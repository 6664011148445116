// problem: data/kernrl/level9/004_RadixSort
// does: sorts by CUB, with room of its own in every call
// emulated: correct
// cuda: correct
// precision: fp32
#include <cub/device/device_radix_sort.cuh>
#include <kernelblaster/scalar.cuh>

void launch_gpu_implementation(void* output, void* keys, int64_t count) {
    size_t bytes = 0;
    const auto from = static_cast<const int32_t*>(keys);
    const auto to = static_cast<int32_t*>(output);
    cub::DeviceRadixSort::SortKeys(nullptr, bytes, from, to, int(count));
    void* room = nullptr;
    cudaMallocAsync(&room, bytes, nullptr);
    cub::DeviceRadixSort::SortKeys(room, bytes, from, to, int(count));
    cudaFreeAsync(room, nullptr);
}
