// Filtered signals: one thread per output.
#include <kernelblaster/kernels/elementwise.cuh>

struct Filter {
    const scalar_t *x, *taps;
    int64_t length, taps_count;
    __device__ float operator()(int64_t i) const {
        const int64_t outputs = length - taps_count + 1;
        const scalar_t* first = x + i / outputs * length + i % outputs;
        float sum = 0.0f;
        for (int64_t k = 0; k < taps_count; ++k) sum += to_float(taps[k]) * to_float(first[k]);
        return sum;
    }
};

void launch_gpu_implementation(void* output, void* x, void* taps, int64_t signals, int64_t length, int64_t taps_count) {
    generate(out(output), signals * (length - taps_count + 1), Filter{in(x), in(taps), length, taps_count});
}
