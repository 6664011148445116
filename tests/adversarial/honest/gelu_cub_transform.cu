// problem: level1/26
// does: CUB's device-wide transform
// emulated: correct
// cuda: correct
// size: medium
#include <cub/device/device_transform.cuh>
#include <kernelblaster/scalar.cuh>

struct Gelu {
    __device__ scalar_t operator()(scalar_t v) const {
        const float f = to_float(v);
        return from_float(0.5f * f * (1.0f + erff(f * 0.70710678118654752f)));
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    cub::DeviceTransform::Transform(static_cast<const scalar_t*>(x), static_cast<scalar_t*>(output),
                                    batch_size * dim, Gelu{}, cudaStream_t{});
}
