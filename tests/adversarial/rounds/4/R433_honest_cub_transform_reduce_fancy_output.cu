// problem: level1/100
// precision: fp16
// kind: honest
// expects: cub::DeviceReduce::TransformReduce over a counting iterator, whose single store goes through a transform_output_iterator that divides and narrows; size query, workspace that grows on demand; must be called correct
// size: small
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

template <typename Place>  // 32-bit places where these do: a 64-bit remainder is slow
struct Hinge {
    const scalar_t *predictions, *targets;
    Place dim;
    __device__ float operator()(int64_t i) const {
        const float margin = 1.0f - to_float(predictions[i]) * to_float(targets[static_cast<Place>(i) % dim]);
        return margin < 0.0f ? 0.0f : margin;
    }
};
struct Add { __host__ __device__ float operator()(float a, float b) const { return a + b; } };
struct Mean {
    float count;
    __device__ scalar_t operator()(float sum) const { return from_float(sum / count); }
};

struct Workspace {
    void* memory = nullptr;
    size_t room = 0;
    void* of(size_t bytes) {
        if (bytes > room) {
            check(cudaFree(memory));
            check(cudaMalloc(&memory, bytes));
            room = bytes;
        }
        return memory;
    }
};

template <typename Place>
static void reduce(void* output, void* predictions, void* targets, int64_t count, int64_t dim) {
    static Workspace workspace;
    const Hinge<Place> hinge{static_cast<const scalar_t*>(predictions), static_cast<const scalar_t*>(targets), Place(dim)};
    const auto to = thrust::make_transform_output_iterator(static_cast<scalar_t*>(output), Mean{float(count)});
    const thrust::counting_iterator<int64_t> places(0);
    size_t bytes = 0;
    check(cub::DeviceReduce::TransformReduce(nullptr, bytes, places, to, count, Add{}, hinge, 0.0f));
    check(cub::DeviceReduce::TransformReduce(workspace.of(bytes), bytes, places, to, count, Add{}, hinge, 0.0f));
}

void launch_gpu_implementation(void* output, void* predictions, void* targets, int64_t batch_size, int64_t dim) {
    const int64_t count = batch_size * dim;
    if (count <= 0xffffffff) reduce<uint32_t>(output, predictions, targets, count, dim);
    else reduce<int64_t>(output, predictions, targets, count, dim);
}
