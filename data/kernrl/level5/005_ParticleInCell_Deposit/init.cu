// Charge deposition: one thread per particle adds to four points of the grid.
#include <kernelblaster/kernels/launch.cuh>

__device__ int64_t wrapped(int64_t i, int64_t grid) { return (i % grid + grid) % grid; }

struct Deposit {
    float* output;
    const float *positions, *charges;
    int64_t grid;
    __device__ void operator()(int64_t i) const {
        const float row = floorf(positions[2 * i]), column = floorf(positions[2 * i + 1]);
        const float down = positions[2 * i] - row, right = positions[2 * i + 1] - column;
        const int64_t top = wrapped(static_cast<int64_t>(row), grid), left = wrapped(static_cast<int64_t>(column), grid);
        const int64_t bottom = (top + 1) % grid, beside = (left + 1) % grid;
        atomicAdd(output + top * grid + left, charges[i] * (1.0f - down) * (1.0f - right));
        atomicAdd(output + top * grid + beside, charges[i] * (1.0f - down) * right);
        atomicAdd(output + bottom * grid + left, charges[i] * down * (1.0f - right));
        atomicAdd(output + bottom * grid + beside, charges[i] * down * right);
    }
};

void launch_gpu_implementation(void* output, void* positions, void* charges, int64_t particles, int64_t grid) {
    check(cudaMemsetAsync(output, 0, grid * grid * sizeof(float)));
    for_each(particles, Deposit{out(output), in(positions), in(charges), grid});
}
