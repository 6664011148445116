// problem: level1/12
// does: thrust::transform over permuted and zipped iterators
// emulated: correct
// cuda: correct
// size: medium
// precision: bf16
#include <kernelblaster/scalar.cuh>

#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

struct RowIndex {
    int64_t columns;
    __host__ __device__ int64_t operator()(int64_t i) const { return i / columns; }
};

struct Multiply {
    template <typename Tuple>
    __device__ scalar_t operator()(const Tuple& both) const {
        return from_float(to_float(thrust::get<0>(both)) * to_float(thrust::get<1>(both)));
    }
};

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    const auto rows = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), RowIndex{m});
    const auto diagonal = thrust::make_permutation_iterator(static_cast<const scalar_t*>(A), rows);
    const auto both = thrust::make_zip_iterator(thrust::make_tuple(diagonal, static_cast<const scalar_t*>(B)));
    thrust::transform(thrust::cuda::par_nosync, both, both + n * m, static_cast<scalar_t*>(output), Multiply{});
}
