// Stream compaction in three steps: blocks count what they keep, one block sums the counts, blocks write.
#include <kernelblaster/kernels/workspace.cuh>

// How many threads of the block before this one have a flag; the block's sum goes to `total`.
__device__ int flags_before(bool flag, int& total) {
    __shared__ int counts[THREADS];
    counts[threadIdx.x] = flag;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const int before = threadIdx.x >= offset ? counts[threadIdx.x - offset] : 0;
        __syncthreads();
        counts[threadIdx.x] += before;
        __syncthreads();
    }
    total = counts[THREADS - 1];
    return counts[threadIdx.x] - flag;
}

__global__ void count_kernel(int* counts, const float* x, int64_t count, float threshold) {
    const int64_t i = first_index();
    int total;
    flags_before(i < count && x[i] >= threshold, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Replaces each count by the sum of those before it; one thread.
__global__ void offsets_kernel(int* counts, int blocks, int32_t* kept_count) {
    int sum = 0;
    for (int i = 0; i < blocks; ++i) {
        const int own = counts[i];
        counts[i] = sum;
        sum += own;
    }
    *kept_count = sum;
}

__global__ void write_kernel(float* kept, const float* x, int64_t count, float threshold, const int* offsets) {
    const int64_t i = first_index();
    const bool keep = i < count && x[i] >= threshold;
    int total;
    const int before = flags_before(keep, total);
    if (keep) kept[offsets[blockIdx.x] + before] = x[i];
}

struct Fill {
    float* kept;
    __device__ void operator()(int64_t i) const { kept[i] = -1.0f; }
};

void launch_gpu_implementation(void* kept, void* kept_count, void* x, int64_t count, float threshold) {
    Workspace scratch;
    const unsigned blocks = blocks_for(count);
    int* counts = reinterpret_cast<int*>(scratch.take_float(blocks));
    for_each(count, Fill{out(kept)});
    count_kernel<<<blocks, THREADS>>>(counts, in(x), count, threshold);
    check(cudaGetLastError());
    offsets_kernel<<<1, 1>>>(counts, static_cast<int>(blocks), static_cast<int32_t*>(kept_count));
    check(cudaGetLastError());
    write_kernel<<<blocks, THREADS>>>(out(kept), in(x), count, threshold, counts);
    check(cudaGetLastError());
}
