// problem: level1/19
// does: one call of thrust::transform over wrapped pointers
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

struct relu_functor {
    __device__ scalar_t operator()(scalar_t v) const {
        const float f = to_float(v);
        return f < 0.0f ? from_float(0.0f) : v;
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    thrust::device_ptr<const scalar_t> first(static_cast<const scalar_t*>(x));
    thrust::device_ptr<scalar_t> result(static_cast<scalar_t*>(output));
    thrust::transform(thrust::device, first, first + batch_size * dim, result, relu_functor());
}
