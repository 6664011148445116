// problem: level1/12
// does: launch plans as shared_ptr behind a mutex, least recently used ones are dropped from a std::list
// emulated: correct
// cuda: correct
#include <kernelblaster/scalar.cuh>

#include <list>
#include <memory>
#include <mutex>
#include <utility>

struct Plan {
    Plan(int64_t n, int64_t m) : vectors(m * int64_t(sizeof(scalar_t)) % 16 == 0), lanes(vectors ? 16 / int(sizeof(scalar_t)) : 1) {
        const int64_t across = m / lanes;
        block = dim3(across >= 128 ? 128 : 32, across >= 128 ? 2 : 8);
        grid = dim3(unsigned((across + block.x - 1) / block.x), unsigned((n + block.y - 1) / block.y));
    }
    bool vectors;
    int lanes;
    dim3 grid, block;
};

class PlanCache {
  public:
    std::shared_ptr<const Plan> get(int64_t n, int64_t m) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto key = std::make_pair(n, m);
        for (auto at = plans_.begin(); at != plans_.end(); ++at) {
            if (at->first != key) continue;
            plans_.splice(plans_.begin(), plans_, at);
            return plans_.front().second;
        }
        plans_.emplace_front(key, std::make_shared<const Plan>(n, m));
        if (plans_.size() > 8) plans_.pop_back();
        return plans_.front().second;
    }

  private:
    std::mutex mutex_;
    std::list<std::pair<std::pair<int64_t, int64_t>, std::shared_ptr<const Plan>>> plans_;
};

template <int kLanes>
struct alignas(sizeof(scalar_t) * kLanes) Vector {
    scalar_t item[kLanes];
};

template <int kLanes>
__global__ void scale(scalar_t* C, const scalar_t* A, const scalar_t* B, int64_t n, int64_t m) {
    using V = Vector<kLanes>;
    const int64_t col = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
    if (row >= n || col >= m / kLanes) return;
    const float factor = to_float(A[row]);
    V v = reinterpret_cast<const V*>(B + row * m)[col];
    for (scalar_t& item : v.item) item = from_float(factor * to_float(item));
    reinterpret_cast<V*>(C + row * m)[col] = v;
}

void launch_gpu_implementation(void* output, void* A, void* B, int64_t n, int64_t m) {
    static PlanCache cache;
    const std::shared_ptr<const Plan> plan = cache.get(n, m);
    auto* kernel = plan->vectors ? scale<16 / int(sizeof(scalar_t))> : scale<1>;
    kernel<<<plan->grid, plan->block>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A),
                                        static_cast<const scalar_t*>(B), n, m);
}
