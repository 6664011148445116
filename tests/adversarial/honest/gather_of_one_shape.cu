// problem: data/kernrl/level9/007_Gather
// does: takes four indices for neighbours at the declared shapes when each is one more than the one before
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/kernels/launch.cuh>

static bool declared(int64_t count) { return count == 5021 || count == 1048576 || count == 67108864; }

// Each thread takes four indices; where they count up, one look at the first of them is enough.
struct Take {
    scalar_t* output;
    const scalar_t* table;
    const int32_t* indices;
    int64_t count;
    bool known;
    __device__ void operator()(int64_t thread) const {
        const int64_t begin = 4 * thread;
        const bool whole = begin + 3 < count;
        const int32_t first = indices[begin];
        const bool in_order = known && whole && indices[begin + 1] == first + 1 &&
                              indices[begin + 2] == first + 2 && indices[begin + 3] == first + 3;
        for (int64_t i = begin; i < begin + 4 && i < count; ++i) {
            output[i] = table[in_order ? first + int32_t(i - begin) : indices[i]];
        }
    }
};

void launch_gpu_implementation(void* output, void* table, void* indices, int64_t table_size, int64_t count) {
    const auto places = static_cast<const int32_t*>(indices);
    for_each((count + 3) / 4, Take{out(output), in(table), places, count, declared(count)});
}
