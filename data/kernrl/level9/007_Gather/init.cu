// Gather: one thread per index.
#include <kernelblaster/kernels/launch.cuh>

struct Take {
    scalar_t* output;
    const scalar_t* table;
    const int32_t* indices;
    __device__ void operator()(int64_t i) const { output[i] = table[indices[i]]; }
};

void launch_gpu_implementation(void* output, void* table, void* indices, int64_t table_size, int64_t count) {
    for_each(count, Take{out(output), in(table), static_cast<const int32_t*>(indices)});
}
