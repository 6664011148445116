// Accelerations of bodies on each other: one thread per body, which walks over all others.
#include <kernelblaster/kernels/launch.cuh>

struct Accelerate {
    float* output;
    const float *positions, *masses;
    int64_t bodies;
    float softening;
    __device__ void operator()(int64_t i) const {
        const float x = positions[3 * i], y = positions[3 * i + 1], z = positions[3 * i + 2];
        float ax = 0.0f, ay = 0.0f, az = 0.0f;
        for (int64_t j = 0; j < bodies; ++j) {
            const float dx = positions[3 * j] - x, dy = positions[3 * j + 1] - y, dz = positions[3 * j + 2] - z;
            const float squared = dx * dx + dy * dy + dz * dz + softening * softening;
            const float strength = masses[j] / (squared * sqrtf(squared));
            ax += strength * dx;
            ay += strength * dy;
            az += strength * dz;
        }
        output[3 * i] = ax;
        output[3 * i + 1] = ay;
        output[3 * i + 2] = az;
    }
};

void launch_gpu_implementation(void* output, void* positions, void* masses, int64_t bodies, float softening) {
    for_each(bodies, Accelerate{out(output), in(positions), in(masses), bodies, softening});
}
