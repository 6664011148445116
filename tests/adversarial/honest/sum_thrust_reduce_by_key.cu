// problem: level1/47
// does: thrust::reduce_by_key over an index that walks down the columns
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>

// The i-th element when each column of each sample is read from top to bottom.
struct DownColumns {
    const scalar_t* x;
    int64_t rows, columns;
    __device__ float operator()(int64_t i) const {
        const int64_t column = i / rows, row = i % rows;
        const int64_t sample = column / columns;
        return to_float(x[(sample * rows + row) * columns + column % columns]);
    }
};

struct ColumnOf {
    int64_t rows;
    __host__ __device__ int64_t operator()(int64_t i) const { return i / rows; }
};

struct ToScalar {
    __device__ scalar_t operator()(float v) const { return from_float(v); }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    using Index = thrust::counting_iterator<int64_t>;
    const DownColumns down{static_cast<const scalar_t*>(x), dim1, dim2};
    const thrust::transform_iterator<DownColumns, Index, float, float> values(Index(0), down);
    const auto keys = thrust::make_transform_iterator(Index(0), ColumnOf{dim1});
    static float* sums = nullptr;
    static int64_t held = 0;
    const int64_t columns = batch_size * dim2;
    if (columns > held) {
        cudaFree(sums);
        cudaMalloc(&sums, columns * sizeof(float));
        held = columns;
    }
    thrust::reduce_by_key(thrust::device, keys, keys + columns * dim1, values, thrust::make_discard_iterator(), sums);
    thrust::transform(thrust::device, sums, sums + columns, static_cast<scalar_t*>(output), ToScalar());
}
