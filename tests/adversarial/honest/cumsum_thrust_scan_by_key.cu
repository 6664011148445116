// problem: level1/89
// does: thrust's scan by key over the whole matrix, rows being keys, between iterators that convert
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/scan.h>

struct row_of {
    int64_t dim;
    __host__ __device__ int64_t operator()(int64_t i) const { return i / dim; }
};

struct widen {
    const scalar_t* x;
    __device__ float operator()(int64_t i) const { return to_float(x[i]); }
};

struct narrow {
    __device__ scalar_t operator()(float v) const { return from_float(v); }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const int64_t total = batch_size * dim;
    thrust::counting_iterator<int64_t> index(0);
    auto keys = thrust::make_transform_iterator(index, row_of{dim});
    auto values = thrust::transform_iterator<widen, decltype(index), float, float>(
        index, widen{static_cast<const scalar_t*>(x)});
    auto results = thrust::make_transform_output_iterator(static_cast<scalar_t*>(output), narrow{});
    thrust::inclusive_scan_by_key(thrust::cuda::par.on(cudaStream_t(0)), keys, keys + total, values, results,
                                  thrust::equal_to<int64_t>{}, thrust::plus<float>{});
}
