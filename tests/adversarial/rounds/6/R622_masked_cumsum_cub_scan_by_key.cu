// problem: level1/93
// precision: bf16
// kind: honest
// expects: one cub::DeviceScan::InclusiveScanByKey over the whole matrix: rows are the keys (computed, never stored), the
//          mask is applied in a transform iterator, sums are fp32 and are rounded in an output iterator
// size: small
#include <kernelblaster/scalar.cuh>

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <limits>
#include <stdexcept>
#include <utility>

namespace {

void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <typename Index>
struct RowOf {
    Index dim;
    __host__ __device__ Index operator()(Index i) const { return i / dim; }
};

template <typename Index>
struct Selected {
    const scalar_t* x;
    const bool* mask;
    __device__ float operator()(Index i) const { return mask[i] ? to_float(x[i]) : 0.0f; }
};

struct Rounded {
    __device__ scalar_t operator()(float sum) const { return from_float(sum); }
};

// Temporary storage, grown on demand; nothing in it outlives a call.
class Scratch {
   public:
    void* at_least(size_t bytes) {
        if (bytes > size_) {
            require(cudaFree(std::exchange(memory_, nullptr)));
            size_ = 0;
            require(cudaMalloc(&memory_, bytes));
            size_ = bytes;
        }
        return memory_;
    }

   private:
    void* memory_ = nullptr;
    size_t size_ = 0;
};

Scratch& scratch() {
    static Scratch instance;
    return instance;
}

// CUB's two-phase calls: the first asks for the size of the temporary storage, the second works.
template <typename Algorithm>
void with_storage(Algorithm&& algorithm) {
    size_t bytes = 0;
    require(algorithm(nullptr, bytes));
    require(algorithm(scratch().at_least(bytes > 0 ? bytes : 1), bytes));
}

template <typename Index>
void scan(scalar_t* output, const scalar_t* x, const bool* mask, Index rows, Index dim) {
    const thrust::counting_iterator<Index> places(Index{0});
    const auto keys = thrust::make_transform_iterator(places, RowOf<Index>{dim});
    const thrust::transform_iterator<Selected<Index>, thrust::counting_iterator<Index>, float, float> values(
        places, Selected<Index>{x, mask});
    const auto sums = thrust::make_transform_output_iterator(output, Rounded{});
    with_storage([&](void* storage, size_t& bytes) {
        return cub::DeviceScan::InclusiveScanByKey(storage, bytes, keys, values, sums, cuda::std::plus<float>{},
                                                   rows * dim, cuda::std::equal_to<>{}, cudaStream_t{});
    });
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, void* mask, int64_t batch_size, int64_t dim) {
    const auto run = [&](auto zero) {
        using Index = decltype(zero);
        scan<Index>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), static_cast<const bool*>(mask),
                    static_cast<Index>(batch_size), static_cast<Index>(dim));
    };
    // 32-bit divisions where they do; the margin is for the last tile, whose iterators go past the end.
    if (batch_size * dim < std::numeric_limits<int32_t>::max() - (1 << 20)) {
        run(uint32_t{0});
    } else {
        run(int64_t{0});
    }
}
