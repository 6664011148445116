// problem: level1/42
// does: plans per shape in an unordered_map: launch geometry and a row table in device memory
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

struct ShapeKey {
    int64_t height, width, kernel, stride, padding, dilation;
    bool operator==(const ShapeKey& o) const {
        return height == o.height && width == o.width && kernel == o.kernel && stride == o.stride &&
               padding == o.padding && dilation == o.dilation;
    }
};

struct ShapeHash {
    std::size_t operator()(const ShapeKey& k) const {
        std::size_t h = 0xcbf29ce484222325ull;
        for (const int64_t part : {k.height, k.width, k.kernel, k.stride, k.padding, k.dilation}) {
            h = (h ^ std::hash<int64_t>{}(part)) * 0x100000001b3ull;
        }
        return h;
    }
};

// First valid tap and end of the valid taps of each output row (or column).
struct Taps {
    int begin, end;
};

struct Plan {
    int64_t out_height = 0, out_width = 0;
    Taps* taps = nullptr;  // rows, then columns
};

static std::vector<Taps> valid_taps(int64_t outputs, int64_t inputs, const ShapeKey& k) {
    std::vector<Taps> taps;
    taps.reserve(outputs);
    for (int64_t o = 0; o < outputs; ++o) {
        Taps t{int(k.kernel), 0};
        for (int64_t i = 0; i < k.kernel; ++i) {
            const int64_t at = o * k.stride - k.padding + i * k.dilation;
            if (at >= 0 && at < inputs) {
                if (i < t.begin) t.begin = int(i);
                t.end = int(i) + 1;
            }
        }
        taps.push_back(t);
    }
    return taps;
}

static const Plan& plan_for(const ShapeKey& key) {
    static std::unordered_map<ShapeKey, Plan, ShapeHash> plans;
    const auto found = plans.find(key);
    if (found != plans.end()) return found->second;
    Plan plan;
    const int64_t reach = key.dilation * (key.kernel - 1) + 1;
    plan.out_height = (key.height + 2 * key.padding - reach) / key.stride + 1;
    plan.out_width = (key.width + 2 * key.padding - reach) / key.stride + 1;
    std::vector<Taps> taps = valid_taps(plan.out_height, key.height, key);
    const std::vector<Taps> columns = valid_taps(plan.out_width, key.width, key);
    taps.insert(taps.end(), columns.begin(), columns.end());
    cudaMalloc(&plan.taps, taps.size() * sizeof(Taps));
    cudaMemcpy(plan.taps, taps.data(), taps.size() * sizeof(Taps), cudaMemcpyHostToDevice);
    return plans.emplace(key, plan).first->second;
}

__global__ void max_pool(scalar_t* y, const scalar_t* x, const Taps* taps, int64_t out_height, int64_t out_width,
                         ShapeKey k) {
    const int64_t col = int64_t(blockIdx.x) * 32 + threadIdx.x, row = int64_t(blockIdx.y) * 8 + threadIdx.y;
    if (row >= out_height || col >= out_width) return;
    const Taps down = taps[row], across = taps[out_height + col];
    const scalar_t* image = x + blockIdx.z * k.height * k.width;
    float best = -INFINITY;
    for (int i = down.begin; i < down.end; ++i) {
        const scalar_t* line = image + (row * k.stride - k.padding + i * k.dilation) * k.width;
        for (int j = across.begin; j < across.end; ++j) {
            const float v = to_float(line[col * k.stride - k.padding + j * k.dilation]);
            if (v > best || isnan(v)) best = v;
        }
    }
    y[(blockIdx.z * out_height + row) * out_width + col] = from_float(best);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t channels, int64_t height,
                               int64_t width, int64_t kernel_size, int64_t stride, int64_t padding,
                               int64_t dilation) {
    const ShapeKey key{height, width, kernel_size, stride, padding, dilation};
    const Plan& plan = plan_for(key);
    const dim3 grid(unsigned((plan.out_width + 31) / 32), unsigned((plan.out_height + 7) / 8),
                    unsigned(batch_size * channels));
    max_pool<<<grid, dim3(32, 8)>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), plan.taps,
                                    plan.out_height, plan.out_width, key);
}
