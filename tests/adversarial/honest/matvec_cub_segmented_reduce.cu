// problem: level1/4
// does: CUB's segmented reduction over an iterator of products, with temporary storage that grows on demand
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                                                     \
    do {                                                                                                     \
        const cudaError_t status_ = (call);                                                                  \
        if (status_ != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));            \
            std::abort();                                                                                    \
        }                                                                                                    \
    } while (0)

struct Product {
    const scalar_t* matrix;
    const scalar_t* vector;
    int64_t columns;
    __host__ __device__ float operator()(int64_t i) const {
#ifdef __CUDA_ARCH__
        return to_float(matrix[i]) * to_float(vector[i % columns]);
#else
        return 0.0f;
#endif
    }
};

struct RowBegin {
    int64_t columns;
    __host__ __device__ int64_t operator()(int64_t row) const { return row * columns; }
};

__global__ void narrow(scalar_t* out, const float* in, int64_t count) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) out[i] = from_float(in[i]);
}

class Scratch {
  public:
    void* need(size_t bytes) {
        if (bytes > held_) {
            CUDA_CHECK(cudaFree(data_));
            CUDA_CHECK(cudaMalloc(&data_, bytes));
            held_ = bytes;
        }
        return data_;
    }

  private:
    void* data_ = nullptr;
    size_t held_ = 0;
};

void launch_gpu_implementation(void* output, void* A, void* B, int64_t m, int64_t k) {
    static Scratch temporary, sums;
    const auto products = thrust::make_transform_iterator(
        thrust::counting_iterator<int64_t>(0),
        Product{static_cast<const scalar_t*>(A), static_cast<const scalar_t*>(B), k});
    const auto begins = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), RowBegin{k});
    float* wide = static_cast<float*>(sums.need(m * sizeof(float)));
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceSegmentedReduce::Sum(nullptr, bytes, products, wide, int(m), begins, begins + 1));
    CUDA_CHECK(cub::DeviceSegmentedReduce::Sum(temporary.need(bytes), bytes, products, wide, int(m), begins, begins + 1));
    narrow<<<unsigned((m + 127) / 128), 128>>>(static_cast<scalar_t*>(output), wide, m);
    CUDA_CHECK(cudaGetLastError());
}
