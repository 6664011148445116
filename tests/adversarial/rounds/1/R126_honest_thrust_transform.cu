// problem: level1/19
// precision: bf16
// kind: honest
// expects: thrust::transform with par_nosync on the legacy stream and a device functor; must be called correct
#include <kernelblaster/scalar.cuh>

#include <cstdio>
#include <cstdlib>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

struct Rectify {
    __device__ scalar_t operator()(scalar_t v) const { return to_float(v) < 0.0f ? from_float(0.0f) : v; }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    const auto in = thrust::device_pointer_cast(static_cast<const scalar_t*>(x));
    thrust::transform(thrust::cuda::par_nosync.on(0), in, in + batch_size * dim,
                      thrust::device_pointer_cast(static_cast<scalar_t*>(output)), Rectify{});
    check(cudaGetLastError());
}
