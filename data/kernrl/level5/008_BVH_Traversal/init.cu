// Distance to the nearest leaf of a tree of boxes: one thread per point, which looks at every leaf.
#include <kernelblaster/kernels/launch.cuh>

struct Nearest {
    float* output;
    const float *points, *boxes;
    int64_t leaves;
    __device__ float squared_to(int64_t point, const float* box) const {
        float squared = 0.0f;
        for (int axis = 0; axis < 3; ++axis) {
            const float at = points[3 * point + axis];
            const float apart = fmaxf(fmaxf(box[axis] - at, at - box[3 + axis]), 0.0f);
            squared += apart * apart;
        }
        return squared;
    }
    __device__ void operator()(int64_t point) const {
        float least = INFINITY;
        for (int64_t leaf = leaves - 1; leaf < 2 * leaves - 1; ++leaf) {
            least = fminf(least, squared_to(point, boxes + 6 * leaf));
        }
        output[point] = sqrtf(least);
    }
};

void launch_gpu_implementation(void* output, void* points, void* boxes, int64_t queries, int64_t depth) {
    for_each(queries, Nearest{out(output), in(points), in(boxes), int64_t{1} << depth});
}
