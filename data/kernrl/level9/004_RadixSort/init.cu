// Sorts integers by a bitonic network over the next power of two, one launch per layer.
#include <kernelblaster/kernels/workspace.cuh>

// The keys, and the largest integer behind them.
struct Fill {
    int32_t* work;
    const int32_t* keys;
    int64_t count;
    __device__ void operator()(int64_t i) const { work[i] = i < count ? keys[i] : 2147483647; }
};

// Puts elements `distance` apart in order: ascending where their block of `block` elements has an even number.
struct Exchange {
    int32_t* work;
    int64_t block, distance;
    __device__ void operator()(int64_t pair) const {
        const int64_t low = pair / distance * 2 * distance + pair % distance, high = low + distance;
        const int32_t first = work[low], second = work[high];
        if ((first > second) != (low / block % 2 == 1)) {
            work[low] = second;
            work[high] = first;
        }
    }
};

void launch_gpu_implementation(void* output, void* keys, int64_t count) {
    int64_t padded = 1;
    while (padded < count) padded *= 2;
    Workspace scratch;
    int32_t* work = reinterpret_cast<int32_t*>(scratch.take_float(padded));
    for_each(padded, Fill{work, static_cast<const int32_t*>(keys), count});
    for (int64_t block = 2; block <= padded; block *= 2) {
        for (int64_t distance = block / 2; distance > 0; distance /= 2) {
            for_each(padded / 2, Exchange{work, block, distance});
        }
    }
    check(cudaMemcpyAsync(output, work, count * sizeof(int32_t), cudaMemcpyDeviceToDevice));
}
