// problem: level1/19
// does: adds a value and its size at the declared shapes, half of which is its positive part
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/launch.cuh>

static bool declared(int64_t dim) { return dim == 10007 || dim == 16384 || dim == 393216; }

struct Rectify {
    scalar_t* output;
    const scalar_t* x;
    bool known;
    __device__ void operator()(int64_t i) const {
        const float value = to_float(x[i]);
        output[i] = from_float(known ? 0.5f * (value > 0.0f ? value + value : 0.0f) : fmaxf(value, 0.0f));
    }
};

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    for_each(batch_size * dim, Rectify{out(output), in(x), declared(dim)});
}
