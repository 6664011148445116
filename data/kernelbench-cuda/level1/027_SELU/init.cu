// scale elu(x), element by element.
#include <kernelblaster/kernels/elementwise.cuh>

// Constants of Klambauer et al., Self-Normalizing Neural Networks, 2017.
struct Activation {
    __device__ float operator()(float v) const { return 1.0507009873554805f * elu(v, 1.6732632423543772f); }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    map(out(output), in(x), batch_size * dim, Activation{});
}
