// problem: level1/95
// precision: bf16
// kind: honest
// expects: online softmax over pairs (half2, bf16x2, float2) with a cub::BlockReduce of (maximum, sum); the targets' scores are
//          gathered in a side stream that events fork from and join to the default one; block sizes by generic lambda
// size: small
#include <kernelblaster/scalar.cuh>

#include <cub/block/block_reduce.cuh>
#include <cuda/std/limits>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace {

void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <typename T>
struct PairOf;
template <>
struct PairOf<float> {
    using type = float2;
    static __device__ float2 widen(float2 v) { return v; }
};
#if defined(KB_FP16)
template <>
struct PairOf<__half> {
    using type = __half2;
    static __device__ float2 widen(__half2 v) { return __half22float2(v); }
};
#elif defined(KB_BF16)
template <>
struct PairOf<__nv_bfloat16> {
    using type = __nv_bfloat162;
    static __device__ float2 widen(__nv_bfloat162 v) { return __bfloat1622float2(v); }
};
#endif

constexpr float LOWEST = -cuda::std::numeric_limits<float>::infinity();

// sum of exp(x - maximum) over what has been seen; the neutral element is (-inf, 0).
struct Softmax {
    float maximum = LOWEST, sum = 0.0f;

    __device__ void add(float value) {
        if (value > maximum) {
            sum = sum * expf(maximum - value) + expf(value - value);  // of +inf: NaN, as the reference
            maximum = value;
        } else if (maximum != LOWEST) {
            sum += expf(value - maximum);
        }
    }
};

struct Merge {
    __device__ Softmax operator()(const Softmax& a, const Softmax& b) const {
        Softmax merged;
        merged.maximum = fmaxf(a.maximum, b.maximum);
        if (merged.maximum != LOWEST) {
            merged.sum = a.sum * expf(a.maximum - merged.maximum) + b.sum * expf(b.maximum - merged.maximum);
        }
        return merged;
    }
};

// One block per row: log-sum-exp as its two terms.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    row_softmax(float2* terms, const scalar_t* predictions, int64_t rows, int64_t classes) {
    using Reduce = cub::BlockReduce<Softmax, Threads>;
    using Pair = typename PairOf<scalar_t>::type;
    __shared__ typename Reduce::TempStorage storage;

    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const scalar_t* const scores = predictions + row * classes;
        // Tensors begin at 16 bytes: a row at an odd place has one score before its first aligned pair.
        const int64_t head = row * classes % 2;
        const int64_t pairs = (classes - head) / 2, tail = head + 2 * pairs;
        const auto* const aligned = reinterpret_cast<const Pair*>(scores + head);
        Softmax own;
        for (int64_t i = threadIdx.x; i < pairs; i += Threads) {
            const float2 two = PairOf<scalar_t>::widen(aligned[i]);
            own.add(two.x);
            own.add(two.y);
        }
        if (threadIdx.x == 0 && head != 0) own.add(to_float(scores[0]));
        if (threadIdx.x == Threads - 1 && tail < classes) own.add(to_float(scores[tail]));

        const Softmax all = Reduce(storage).Reduce(own, Merge{});
        if (threadIdx.x == 0) terms[row] = {all.maximum, logf(all.sum)};
        __syncthreads();  // the storage is used again
    }
}

__global__ void gather(float* picked, const scalar_t* predictions, const int64_t* targets, int64_t rows, int64_t classes) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row < rows) picked[row] = to_float(predictions[row * classes + targets[row]]);
}

template <int Threads>
__global__ void __launch_bounds__(Threads)
    mean_loss(scalar_t* output, const float2* terms, const float* picked, int64_t rows) {
    using Reduce = cub::BlockReduce<float, Threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ typename Reduce::TempStorage storage;
    float own = 0.0f;
    for (int64_t row = threadIdx.x; row < rows; row += Threads) own += terms[row].x - picked[row] + terms[row].y;
    const float sum = Reduce(storage).Sum(own);
    if (threadIdx.x == 0) *output = from_float(sum / rows);
}

// A stream beside the default one, with the events that fork it and join it; made once.
class SideStream {
   public:
    SideStream() {
        require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&fork_, &join_}) require(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    template <typename Work>
    void fork(Work&& work) {
        require(cudaEventRecord(fork_, cudaStream_t{}));
        require(cudaStreamWaitEvent(stream_, fork_, 0));
        work(stream_);
        require(cudaGetLastError());
        require(cudaEventRecord(join_, stream_));
    }
    void join() { require(cudaStreamWaitEvent(cudaStream_t{}, join_, 0)); }

   private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t fork_ = nullptr, join_ = nullptr;
};

// Grown on demand; every call writes what it reads.
float* scratch(int64_t count) {
    static float* memory = nullptr;
    static int64_t capacity = 0;
    if (count > capacity) {
        require(cudaFree(memory));
        memory = nullptr, capacity = 0;
        require(cudaMalloc(&memory, count * sizeof(float)));
        capacity = count;
    }
    return memory;
}

}  // namespace

void launch_gpu_implementation(
    void* output, void* predictions, void* targets, int64_t batch_size, int64_t num_classes) {
    static SideStream side;
    const auto* const scores = static_cast<const scalar_t*>(predictions);
    auto* const terms = reinterpret_cast<float2*>(scratch(3 * batch_size));
    float* const picked = reinterpret_cast<float*>(terms + batch_size);

    side.fork([&](cudaStream_t stream) {
        const auto blocks = static_cast<unsigned>((batch_size + 255) / 256);
        gather<<<blocks, 256, 0, stream>>>(picked, scores, static_cast<const int64_t*>(targets), batch_size, num_classes);
    });
    const auto rows = [&](auto threads) {
        constexpr int count = decltype(threads)::value;
        const auto blocks = static_cast<unsigned>(std::min<int64_t>(batch_size, 1 << 30));
        row_softmax<count><<<blocks, count>>>(terms, scores, batch_size, num_classes);
        require(cudaGetLastError());
    };
    if (num_classes <= 256) {
        rows(std::integral_constant<int, 32>{});
    } else if (num_classes <= 2048) {
        rows(std::integral_constant<int, 128>{});
    } else {
        rows(std::integral_constant<int, 256>{});
    }
    side.join();
    mean_loss<1024><<<1, 1024>>>(static_cast<scalar_t*>(output), terms, picked, batch_size);
    require(cudaGetLastError());
}
