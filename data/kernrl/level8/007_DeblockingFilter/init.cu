// Deblocking: a copy, then one thread per row and vertical edge, then one per column and horizontal edge.
#include <kernelblaster/kernels/launch.cuh>

// Edges of one direction: pixels across an edge lie `step` apart, lines `line` apart.
struct Filter {
    uint8_t* pixels;
    int64_t edges, block, step, line, alpha, beta, most;
    __device__ static int32_t within(int32_t v, int32_t low, int32_t high) { return v < low ? low : v > high ? high : v; }
    __device__ void operator()(int64_t i) const {
        uint8_t* q = pixels + i / edges * line + (i % edges + 1) * block * step;
        const int32_t p1 = q[-2 * step], p0 = q[-step], q0 = q[0], q1 = q[step];
        if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
        const int32_t limit = static_cast<int32_t>(most);
        const int32_t change = within((4 * (q0 - p0) + p1 - q1 + 4) >> 3, -limit, limit);
        q[-step] = static_cast<uint8_t>(within(p0 + change, 0, 255));
        q[0] = static_cast<uint8_t>(within(q0 - change, 0, 255));
    }
};

// Edges of an extent that have two pixels on each side.
static int64_t edges_of(int64_t extent, int64_t block) { return extent < block + 2 ? 0 : (extent - 2) / block; }

void launch_gpu_implementation(void* output, void* x, int64_t height, int64_t width, int64_t block, int64_t alpha,
                               int64_t beta, int64_t most) {
    uint8_t* pixels = static_cast<uint8_t*>(output);
    check(cudaMemcpyAsync(pixels, x, height * width, cudaMemcpyDeviceToDevice));
    const int64_t across = edges_of(width, block), down = edges_of(height, block);
    if (across > 0) for_each(across * height, Filter{pixels, across, block, 1, width, alpha, beta, most});
    if (down > 0) for_each(down * width, Filter{pixels, down, block, width, 1, alpha, beta, most});
}
