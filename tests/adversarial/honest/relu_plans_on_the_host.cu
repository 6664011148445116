// problem: level1/19
// does: plans its tiles in vectors, maps, strings and thread-local statics on the host, throws and catches, at each call
// emulated: correct
// cuda: correct
// size: medium
#include <kernelblaster/scalar.cuh>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

struct Tile {
    int64_t begin, count;
};

__global__ void relu(scalar_t* y, const scalar_t* x, Tile tile) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < tile.count) y[tile.begin + i] = from_float(fmaxf(to_float(x[tile.begin + i]), 0.0f));
}

// Plans are kept by name.
class Planner {
   public:
    const std::vector<Tile>& plan(int64_t n, int64_t parts) {
        const std::string key = std::to_string(n) + "/" + std::to_string(parts);
        try {
            return plans_.at(key);
        } catch (const std::out_of_range&) {
            return plans_[key] = make(n, parts);
        }
    }

   private:
    static std::vector<Tile> make(int64_t n, int64_t parts) {
        std::vector<int64_t> counts(size_t(parts), n / parts), begins;
        for (int64_t i = 0; i < n % parts; ++i) ++counts[size_t(i)];
        begins.reserve(counts.size());
        std::exclusive_scan(counts.begin(), counts.end(), std::back_inserter(begins), int64_t{0});
        std::vector<Tile> tiles;
        for (size_t i = 0; i < counts.size(); ++i) tiles.push_back({begins[i], counts[i]});
        tiles.erase(std::remove_if(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.count == 0; }),
                    tiles.end());
        return tiles;
    }

    std::map<std::string, std::vector<Tile>> plans_;
};

static Planner planner;

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    thread_local std::vector<int64_t> scratch(1 << 16);
    std::iota(scratch.begin(), scratch.end(), batch_size);
    for (const Tile& tile : planner.plan(batch_size * dim, 1 + scratch[3] % 4)) {
        relu<<<unsigned((tile.count + 255) / 256), 256>>>(static_cast<scalar_t*>(output),
                                                          static_cast<const scalar_t*>(x), tile);
    }
}
