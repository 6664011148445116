// Segmented scan: the thread at the head of a segment walks through it.
#include <kernelblaster/kernels/launch.cuh>

struct Walk {
    float* output;
    const float* values;
    const uint8_t* heads;
    int64_t length;
    __device__ bool begins(int64_t i) const { return i % length == 0 || heads[i] != 0; }
    __device__ void operator()(int64_t i) const {
        if (!begins(i)) return;
        const int64_t end = i - i % length + length;
        float sum = 0.0f;
        do {
            output[i] = sum;
            sum += values[i];
            ++i;
        } while (i < end && heads[i] == 0);
    }
};

void launch_gpu_implementation(void* output, void* values, void* heads, int64_t rows, int64_t length) {
    for_each(rows * length, Walk{out(output), in(values), static_cast<const uint8_t*>(heads), length});
}
