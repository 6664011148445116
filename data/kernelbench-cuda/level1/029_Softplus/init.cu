// log(1 + exp(x)), element by element.
#include <kernelblaster/kernels/elementwise.cuh>

struct Activation {
    __device__ float operator()(float v) const { return softplus(v); }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    map(out(output), in(x), batch_size * dim, Activation{});
}
