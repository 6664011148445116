// Least distance of rays to spheres: one thread per ray.
#include <kernelblaster/kernels/launch.cuh>

struct Clearance {
    float* output;
    const float *origins, *directions, *centers, *radii;
    int64_t spheres;
    float epsilon;
    __device__ void operator()(int64_t ray) const {
        const float *o = origins + 3 * ray, *d = directions + 3 * ray;
        const float length = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + epsilon;
        float least = INFINITY;
        for (int64_t sphere = 0; sphere < spheres; ++sphere) {
            const float* c = centers + 3 * sphere;
            const float x = c[0] - o[0], y = c[1] - o[1], z = c[2] - o[2];
            const float along = fmaxf((x * d[0] + y * d[1] + z * d[2]) / length, 0.0f);
            const float ax = along * d[0] - x, ay = along * d[1] - y, az = along * d[2] - z;
            least = fminf(least, sqrtf(ax * ax + ay * ay + az * az) - radii[sphere]);
        }
        output[ray] = least;
    }
};

void launch_gpu_implementation(void* output, void* origins, void* directions, void* centers, void* radii, int64_t rays,
                               int64_t spheres, float epsilon) {
    for_each(rays, Clearance{out(output), in(origins), in(directions), in(centers), in(radii), spheres, epsilon});
}
