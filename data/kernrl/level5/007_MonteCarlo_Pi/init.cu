// Points in a quarter circle: one thread per row counts its points.
#include <kernelblaster/kernels/launch.cuh>

constexpr int64_t RADIUS = 32768;

struct Count {
    int32_t* output;
    const int16_t* coordinates;
    int64_t points;
    __device__ void operator()(int64_t row) const {
        int32_t inside = 0;
        for (int64_t i = row * points; i < (row + 1) * points; ++i) {
            const int64_t x = coordinates[2 * i], y = coordinates[2 * i + 1];
            inside += x * x + y * y < RADIUS * RADIUS;
        }
        output[row] = inside;
    }
};

void launch_gpu_implementation(void* output, void* coordinates, int64_t rows, int64_t points) {
    for_each(rows, Count{static_cast<int32_t*>(output), static_cast<const int16_t*>(coordinates), points});
}
