// problem: level1/51
// precision: fp16
// kind: honest
// expects: argmax by splitting the axis over blocks; packed (value, place) keys meet in cuda::atomic_ref::fetch_max; keys
//          are allocated stream-ordered and zeroed in every call; libcu++ mdspan, bit_cast, occupancy queries
// size: small
#include <kernelblaster/scalar.cuh>

#include <cuda/atomic>
#include <cuda/cmath>
#include <cuda/std/bit>
#include <cuda/std/cstdint>
#include <cuda/std/mdspan>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

using Cube = cuda::std::mdspan<const scalar_t, cuda::std::dextents<int64_t, 3>>;
using Key = unsigned long long;

void require(cudaError_t status, const char* what) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// Stream-ordered memory of one call.
class AsyncBuffer {
   public:
    explicit AsyncBuffer(size_t bytes) {
        if (bytes > 0) require(cudaMallocAsync(&memory_, bytes, cudaStream_t{}), "cudaMallocAsync");
    }
    AsyncBuffer(const AsyncBuffer&) = delete;
    AsyncBuffer& operator=(const AsyncBuffer&) = delete;
    ~AsyncBuffer() {
        if (memory_ != nullptr) cudaFreeAsync(memory_, cudaStream_t{});
    }
    Key* keys() const { return static_cast<Key*>(memory_); }

   private:
    void* memory_ = nullptr;
};

// Orders as the floats do, and of equal values the earlier place is the larger key. No key is 0: that of -inf is not.
__device__ Key pack(float value, uint32_t place) {
    const uint32_t bits = cuda::std::bit_cast<uint32_t>(value + 0.0f);  // -0 becomes +0
    const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return static_cast<Key>(ordered) << 32 | static_cast<uint32_t>(~place);
}

__device__ int64_t place_of(Key key) { return static_cast<int64_t>(static_cast<uint32_t>(~static_cast<uint32_t>(key))); }

// A block takes blockDim.x neighbouring columns of one sample and `share` rows.
template <bool Shared>
__global__ void argmax_part(Cube x, Key* keys, int64_t* output, int64_t column_blocks, int64_t splits, int64_t share) {
    const int64_t block = blockIdx.x;
    const int64_t split = block % splits;
    const int64_t column = block / splits % column_blocks * blockDim.x + threadIdx.x;
    const int64_t sample = block / splits / column_blocks;
    if (column >= x.extent(2)) return;

    const int64_t first = split * share;
    const int64_t last = first + share < x.extent(1) ? first + share : x.extent(1);
    float best = to_float(x(sample, first, column));
    int64_t place = first;
#pragma unroll 8
    for (int64_t row = first + 1; row < last; ++row) {
        const float value = to_float(x(sample, row, column));
        if (value > best) {
            best = value;
            place = row;
        }
    }

    const int64_t line = sample * x.extent(2) + column;
    if constexpr (Shared) {
        cuda::atomic_ref<Key, cuda::thread_scope_device> key(keys[line]);
        key.fetch_max(pack(best, static_cast<uint32_t>(place)), cuda::std::memory_order_relaxed);
    } else {
        output[line] = place;
    }
}

__global__ void unpack(int64_t* output, const Key* keys, int64_t lines) {
    const int64_t line = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (line < lines) output[line] = place_of(keys[line]);
}

}  // namespace

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const Cube cube(static_cast<const scalar_t*>(x), batch_size, dim1, dim2);
    auto* const places = static_cast<int64_t*>(output);
    constexpr int threads = 128;

    int device = 0, processors = 0, resident = 0;
    require(cudaGetDevice(&device), "cudaGetDevice");
    require(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, argmax_part<true>, threads, 0), "occupancy");

    // As many parts of the axis as fill the device, of at least 32 rows each; every part has at least one row.
    const int64_t lines = batch_size * dim2;
    const int64_t column_blocks = cuda::ceil_div(dim2, int64_t{threads});
    const int64_t wanted = cuda::ceil_div(int64_t{processors} * std::max(resident, 1), batch_size * column_blocks);
    const int64_t parts = std::clamp(wanted, int64_t{1}, cuda::ceil_div(dim1, int64_t{32}));
    const int64_t share = cuda::ceil_div(dim1, parts);
    const int64_t splits = cuda::ceil_div(dim1, share);
    const auto blocks = static_cast<unsigned>(batch_size * column_blocks * splits);

    if (splits == 1) {
        argmax_part<false><<<blocks, threads>>>(cube, nullptr, places, column_blocks, splits, share);
        require(cudaGetLastError(), "argmax_part");
        return;
    }
    const AsyncBuffer buffer(lines * sizeof(Key));
    require(cudaMemsetAsync(buffer.keys(), 0, lines * sizeof(Key), cudaStream_t{}), "cudaMemsetAsync");
    argmax_part<true><<<blocks, threads>>>(cube, buffer.keys(), places, column_blocks, splits, share);
    require(cudaGetLastError(), "argmax_part");
    unpack<<<static_cast<unsigned>(cuda::ceil_div(lines, int64_t{256})), 256>>>(places, buffer.keys(), lines);
    require(cudaGetLastError(), "unpack");
}
