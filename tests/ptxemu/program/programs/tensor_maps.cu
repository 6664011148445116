// Copies by tensor maps beside loops over the same elements: `tensor_maps CASE` ends with 0 when all agree.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

constexpr int kMostBytes = 32 << 10;

__device__ unsigned at(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }
__device__ void init(uint64_t* bar) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(uint64_t* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(uint64_t* bar, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(at(bar)),
        "r"(parity)
        : "memory");
}

struct Coordinates {
    int c[5];
    unsigned short offset[3];
};

#define LOAD "shared::cluster.global"
#define DONE "mbarrier::complete_tx::bytes"
__device__ void load(int rank, bool im2col, void* to, const CUtensorMap* map, const Coordinates& p, uint64_t* bar) {
    const unsigned target = at(to), barrier = at(bar);
    const int *c = p.c;
    if (im2col && rank == 3)
        asm volatile("cp.async.bulk.tensor.3d." LOAD ".im2col." DONE " [%0], [%1, {%2, %3, %4}], [%5], {%6};" ::"r"(target),
                     "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(barrier), "h"(p.offset[0]) : "memory");
    else if (im2col && rank == 4)
        asm volatile("cp.async.bulk.tensor.4d." LOAD ".im2col." DONE " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(target),
                     "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(barrier), "h"(p.offset[0]), "h"(p.offset[1]) : "memory");
    else if (im2col)
        asm volatile("cp.async.bulk.tensor.5d." LOAD ".im2col." DONE " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(target),
                     "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier), "h"(p.offset[0]), "h"(p.offset[1]),
                     "h"(p.offset[2]) : "memory");
    else if (rank == 1)
        asm volatile("cp.async.bulk.tensor.1d." LOAD ".tile." DONE " [%0], [%1, {%2}], [%3];" ::"r"(target), "l"(map), "r"(c[0]), "r"(barrier) : "memory");
    else if (rank == 2)
        asm volatile("cp.async.bulk.tensor.2d." LOAD "." DONE " [%0], [%1, {%2, %3}], [%4];" ::"r"(target), "l"(map), "r"(c[0]), "r"(c[1]), "r"(barrier) : "memory");
    else if (rank == 3)
        asm volatile("cp.async.bulk.tensor.3d." LOAD "." DONE " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(target), "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(barrier) : "memory");
    else if (rank == 4)
        asm volatile("cp.async.bulk.tensor.4d." LOAD "." DONE " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(target), "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(barrier) : "memory");
    else
        asm volatile("cp.async.bulk.tensor.5d." LOAD "." DONE " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(target), "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier) : "memory");
}

// The box as it lies in shared memory.
__global__ void load_box(const __grid_constant__ CUtensorMap map, int rank, bool im2col, Coordinates place, unsigned bytes, unsigned lies,
                         unsigned char* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) init(&bar);
    for (unsigned i = threadIdx.x; i < lies; i += blockDim.x) memory[i] = 0xee;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&bar, bytes);
        load(rank, im2col, memory, &map, place, &bar);
    }
    wait(&bar, 0);
    for (unsigned i = threadIdx.x; i < lies; i += blockDim.x) out[i] = memory[i];
}

enum Verb { kStore, kAdd, kMin, kMax, kAnd, kOr, kXor, kInc, kDec };

template <int V>
__device__ void store2(const CUtensorMap* map, const Coordinates& p, const void* from) {
#define STORE2(text) asm volatile(text " [%0, {%1, %2}], [%3];" ::"l"(map), "r"(p.c[0]), "r"(p.c[1]), "r"(at(from)) : "memory")
    if (V == kStore) STORE2("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group");
    if (V == kAdd) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group");
    if (V == kMin) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.bulk_group");
    if (V == kMax) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group");
    if (V == kAnd) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group");
    if (V == kOr) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.or.bulk_group");
    if (V == kXor) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group");
    if (V == kInc) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group");
    if (V == kDec) STORE2("cp.reduce.async.bulk.tensor.2d.global.shared::cta.dec.bulk_group");
}

template <int V>
__global__ void store_box(const __grid_constant__ CUtensorMap map, Coordinates place, unsigned lies, const unsigned char* in) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < lies; i += blockDim.x) memory[i] = in[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    store2<V>(&map, place, memory);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Every block of a cluster of four gets the same tile from the first and third: the lower half and the upper half.
__global__ void __cluster_dims__(4, 1, 1) spread(const __grid_constant__ CUtensorMap map, float* out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ uint64_t bar;
    const unsigned rank = blockIdx.x % 4, tile = blockIdx.x / 4;
    if (threadIdx.x == 0) {
        init(&bar);
        expect(&bar, 2 * 16 * 32 * 4);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (threadIdx.x == 0 && rank % 2 == 0)
        asm volatile("cp.async.bulk.tensor.2d." LOAD "." DONE ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
                         at(memory) + rank / 2 * 2048), "l"(&map), "r"(0), "r"(int(tile * 32 + rank / 2 * 16)), "r"(at(&bar)),
                     "h"((unsigned short)15) : "memory");
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x)
        out[(blockIdx.x * 32 + i / 32) * 32 + i % 32] = reinterpret_cast<float*>(memory)[i] * (rank + 1);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Plain copies: each block of a pair passes its bytes to the other, and a multicast from global memory.
__global__ void __cluster_dims__(2, 1, 1) exchange(const float* in, float* out) {
    __shared__ __align__(128) float mine[64], theirs[64], both[64];
    __shared__ uint64_t bar;
    const unsigned rank = blockIdx.x % 2;
    if (threadIdx.x == 0) {
        init(&bar);
        expect(&bar, 2 * sizeof mine);
    }
    mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
        unsigned to, barrier;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at(theirs)), "r"(rank ^ 1));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(at(&bar)), "r"(rank ^ 1));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta." DONE " [%0], [%1], 256, [%2];" ::"r"(to), "r"(at(mine)), "r"(barrier) : "memory");
        if (rank == 0)
            asm volatile("cp.async.bulk.shared::cluster.global." DONE ".multicast::cluster [%0], [%1], 256, [%2], 3;" ::"r"(at(both)), "l"(in),
                         "r"(at(&bar)) : "memory");
    }
    wait(&bar, 0);
    out[blockIdx.x * 64 + threadIdx.x] = theirs[threadIdx.x] + 1000 * both[threadIdx.x];
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__global__ void add_rows(const float* in, float* out) {
    __shared__ __align__(128) float row[64];
    row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;" ::"l"(out), "r"(at(row)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// -- the host's side: what a box holds, element by element

struct Tensor {
    CUtensorMapDataType type;
    unsigned size;
    std::vector<uint64_t> extents;       // elements
    std::vector<unsigned> box, steps;    // of tiles
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    bool nan = false, im2col = false;
    std::vector<int> lower, upper;       // of im2col
    unsigned padding = 0;                // bytes behind each row of the innermost dimension
    int rank() const { return int(extents.size()); }
    uint64_t stride(int d) const {
        uint64_t bytes = (extents[0] * size + padding + 15) / 16 * 16;
        for (int k = 1; k < d; ++k) bytes *= extents[k];
        return d == 0 ? size : bytes;
    }
    uint64_t bytes() const { return rank() == 1 ? (extents[0] * size + 15) / 16 * 16 : stride(rank() - 1) * extents[rank() - 1]; }
    unsigned row() const { return box[0] * size; }
    unsigned pitch() const { return std::max(row(), swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0u : 16u << swizzle); }
    unsigned count(int d) const { return (box[d] + steps[d] - 1) / steps[d]; }
    unsigned rows() const {
        if (im2col) return box[1];
        unsigned n = 1;
        for (int d = 1; d < rank(); ++d) n *= count(d);
        return n;
    }
};

bool encode(const Tensor& t, void* data, CUtensorMap* map) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    std::vector<cuuint64_t> strides;
    for (int d = 1; d < t.rank(); ++d) strides.push_back(t.stride(d));
    strides.push_back(0);
    const char* name = t.im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) || found != cudaDriverEntryPointSuccess) return false;
    const auto fill = t.nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    const std::vector<cuuint64_t> extents(t.extents.begin(), t.extents.end());
    if (t.im2col)
        return reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(function)(
                   map, t.type, t.rank(), data, extents.data(), strides.data(), t.lower.data(), t.upper.data(), t.box[0], t.box[1],
                   t.steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill) == CUDA_SUCCESS;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
               map, t.type, t.rank(), data, extents.data(), strides.data(), t.box.data(), t.steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
               t.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill) == CUDA_SUCCESS;
}

// Visits the elements of a box: visit(byte in shared memory, byte in the tensor or -1).
template <class Visit>
void each_element(const Tensor& t, const Coordinates& p, Visit visit) {
    std::vector<int> pixel(5);  // of im2col: base pixel
    for (int d = 1; d < t.rank(); ++d) pixel[d] = p.c[d];
    for (unsigned row = 0; row < t.rows(); ++row) {
        std::vector<int> c(5);
        unsigned rest = row;
        for (int d = 1; d < t.rank(); ++d) {
            if (t.im2col) {
                c[d] = pixel[d] + (d + 1 < t.rank() ? p.offset[d - 1] : 0);
            } else {
                c[d] = p.c[d] + int(rest % t.count(d) * t.steps[d]);
                rest /= t.count(d);
            }
        }
        for (unsigned e = 0; e < t.box[0]; ++e) {
            c[0] = p.c[0] + int(e);
            bool inside = true;
            int64_t from = 0;
            for (int d = 0; d < t.rank(); ++d) {
                inside = inside && c[d] >= 0 && uint64_t(c[d]) < t.extents[d];
                from += int64_t(c[d]) * int64_t(t.stride(d));
            }
            unsigned to = row * t.pitch() + e * t.size;
            if (t.swizzle == CU_TENSOR_MAP_SWIZZLE_32B) to ^= to >> 3 & 0x10;
            if (t.swizzle == CU_TENSOR_MAP_SWIZZLE_64B) to ^= to >> 3 & 0x30;
            if (t.swizzle == CU_TENSOR_MAP_SWIZZLE_128B) to ^= to >> 3 & 0x70;
            visit(to, inside ? from : -1);
        }
        if (!t.im2col) continue;
        for (int d = 1; d < t.rank(); ++d) {  // the next base pixel
            pixel[d] += d + 1 < t.rank() ? int(t.steps[d]) : 1;
            if (d + 1 == t.rank() || pixel[d] <= int(t.extents[d]) - 1 + t.upper[d - 1]) break;
            pixel[d] = t.lower[d - 1];
        }
    }
}

unsigned char* device_copy(const std::vector<unsigned char>& bytes) {
    unsigned char* to;
    cudaMalloc(&to, bytes.size());
    cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    return to;
}

std::vector<unsigned char> host_copy(const unsigned char* from, size_t bytes) {
    std::vector<unsigned char> to(bytes);
    cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost);
    return to;
}

std::vector<unsigned char> numbered(size_t bytes, unsigned seed) {
    std::vector<unsigned char> values(bytes);
    for (size_t i = 0; i < bytes; ++i) values[i] = (unsigned char)((i * 2654435761u + seed * 97u) >> 13);
    return values;
}

bool loads(const Tensor& t, const std::vector<Coordinates>& places) {
    const std::vector<unsigned char> data = numbered(t.bytes(), 1);
    unsigned char *tensor = device_copy(data), *out;
    const unsigned lies = t.rows() * t.pitch();
    CUtensorMap map;
    cudaMalloc(&out, lies);
    if (lies > kMostBytes || !encode(t, tensor, &map)) return std::puts("no map"), false;
    for (const Coordinates& place : places) {
        load_box<<<1, 64, lies>>>(map, t.rank(), t.im2col, place, t.rows() * t.row(), lies, out);
        if (const cudaError_t error = cudaDeviceSynchronize()) return std::puts(cudaGetErrorName(error)), false;
        const std::vector<unsigned char> got = host_copy(out, lies);
        std::vector<unsigned char> expected(lies, 0xee);
        each_element(t, place, [&](unsigned to, int64_t from) {
            for (unsigned b = 0; b < t.size; ++b) expected[to + b] = from >= 0 ? data[from + b] : 0;
        });
        for (unsigned i = 0; i < lies; ++i)
            if (got[i] != expected[i]) return std::printf("byte %u: %d, not %d\n", i, got[i], expected[i]), false;
    }
    return true;
}

template <int V, class T>
bool stores(const Tensor& t, const Coordinates& place, T (*combine)(T, T)) {
    const unsigned lies = t.rows() * t.pitch();
    std::vector<unsigned char> before = numbered(t.bytes(), 2), box = numbered(lies, 3);
    if (T(0.5) != T(0)) {  // numbers that add without rounding
        const auto tame = [](std::vector<unsigned char>& bytes) {
            for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
                const T value = T(bytes[i]) - T(100);
                std::memcpy(&bytes[i], &value, sizeof value);
            }
        };
        tame(before), tame(box);
    }
    unsigned char *tensor = device_copy(before), *in = device_copy(box);
    CUtensorMap map;
    if (!encode(t, tensor, &map)) return std::puts("no map"), false;
    store_box<V><<<1, 64, lies>>>(map, place, lies, in);
    if (const cudaError_t error = cudaDeviceSynchronize()) return std::puts(cudaGetErrorName(error)), false;
    std::vector<unsigned char> expected = before;
    each_element(t, place, [&](unsigned from, int64_t to) {
        T old, value;
        if (to < 0) return;
        std::memcpy(&old, &expected[to], sizeof(T));
        std::memcpy(&value, &box[from], sizeof(T));
        value = combine(old, value);
        std::memcpy(&expected[to], &value, sizeof(T));
    });
    return host_copy(tensor, t.bytes()) == expected;
}

Tensor tile(std::vector<uint64_t> extents, std::vector<unsigned> box, CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, unsigned size = 4) {
    Tensor t{type, size, extents, box, std::vector<unsigned>(extents.size(), 1)};
    return t;
}

// The innermost coordinate has to be at a multiple of 16 bytes, which only the GPU knows.
bool unaligned() {
    const Tensor t = tile({40, 30}, {16, 8});
    unsigned char* data;
    CUtensorMap map;
    cudaMalloc(&data, t.bytes());
    if (!encode(t, data, &map)) return false;
    load_box<<<1, 64, 512>>>(map, 2, false, {{3, 0}}, 512, 512, data);
    return cudaDeviceSynchronize() == cudaErrorIllegalInstruction;
}

bool all_loads() {
    bool good = loads(tile({100}, {32}), {{{0}}, {{84}}, {{-8}}, {{200}}});
    good = good && loads(tile({40, 30}, {16, 8}), {{{0, 0}}, {{8, 5}}, {{32, 28}}, {{-4, -3}}, {{-16, 0}}});
    good = good && loads(tile({20, 9, 7}, {8, 4, 3}), {{{0, 0, 0}}, {{16, 7, 5}}, {{-4, -1, -1}}});
    good = good && loads(tile({10, 5, 4, 6}, {4, 3, 2, 4}), {{{0, 0, 0, 0}}, {{8, 3, 3, 4}}});
    good = good && loads(tile({6, 4, 3, 3, 5}, {4, 2, 2, 2, 3}), {{{0, 0, 0, 0, 0}}, {{4, 3, 2, 2, 3}}, {{0, -1, -1, -1, -1}}});
    good = good && loads(tile({64, 20}, {32, 16}, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1), {{{0, 0}}, {{48, 10}}});
    good = good && loads(tile({24, 20}, {6, 16}, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8), {{{0, 0}}, {{20, 10}}});
    Tensor stepped = tile({32, 30, 10}, {8, 12, 7});
    stepped.steps = {1, 3, 2};
    return good && loads(stepped, {{{0, 0, 0}}, {{4, 20, 5}}, {{4, -2, -1}}});
}

bool all_swizzles() {
    bool good = true;
    for (const auto swizzle : {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B}) {
        Tensor t = tile({160, 50}, {8u << swizzle, 24}, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2);
        t.swizzle = swizzle;
        good = good && loads(t, {{{0, 0}}, {{152, 40}}, {{-8, -5}}});
    }
    return good;
}

bool all_im2col() {
    Tensor t = tile({16, 7, 6, 3}, {8, 50, 1, 1}, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2);
    t.im2col = true;
    t.lower = {-1, -1}, t.upper = {-1, -1};
    bool good = loads(t, {{{0, -1, -1, 0}, {0, 0}}, {{8, -1, -1, 0}, {2, 1}}, {{0, 2, 3, 1}, {1, 2}}});
    t.steps = {1, 2, 2, 1}, t.box[1] = 20;
    good = good && loads(t, {{{0, -1, -1, 0}, {1, 2}}, {{8, 1, 3, 0}, {0, 0}}});
    Tensor line = tile({8, 21, 4}, {8, 33, 1});
    line.im2col = true;
    line.lower = {-2}, line.upper = {-2};
    good = good && loads(line, {{{0, -2, 0}, {4}}, {{0, 7, 1}, {0}}});
    Tensor volume = tile({4, 5, 4, 3, 2}, {4, 70, 1, 1, 1});
    volume.im2col = true;
    volume.lower = {0, -1, 0}, volume.upper = {-2, -1, -1};
    return good && loads(volume, {{{0, 0, -1, 0, 0}, {2, 1, 1}}});
}

bool all_stores() {
    Tensor swizzled = tile({40, 30}, {16, 8});
    swizzled.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    bool good = stores<kStore, float>(tile({40, 30}, {16, 8}), {{8, 5}}, [](float, float b) { return b; });
    good = good && stores<kStore, float>(swizzled, {{32, 28}}, [](float, float b) { return b; });
    good = good && stores<kStore, float>(swizzled, {{-4, -3}}, [](float, float b) { return b; });
    good = good && stores<kAdd, float>(swizzled, {{32, 25}}, [](float a, float b) { return a + b; });
    const Tensor whole = tile({40, 30}, {16, 8}, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4), sign = tile({40, 30}, {16, 8}, CU_TENSOR_MAP_DATA_TYPE_INT32, 4);
    const Coordinates place{{32, 25}};
    using U = unsigned;
    good = good && stores<kAdd, U>(whole, place, [](U a, U b) { return a + b; });
    good = good && stores<kMin, U>(whole, place, [](U a, U b) { return std::min(a, b); });
    good = good && stores<kMax, int>(sign, place, [](int a, int b) { return std::max(a, b); });
    good = good && stores<kAnd, U>(whole, place, [](U a, U b) { return a & b; });
    good = good && stores<kOr, U>(whole, place, [](U a, U b) { return a | b; });
    good = good && stores<kXor, U>(whole, place, [](U a, U b) { return a ^ b; });
    good = good && stores<kInc, U>(whole, place, [](U a, U b) { return a >= b ? 0 : a + 1; });
    good = good && stores<kDec, U>(whole, place, [](U a, U b) { return a == 0 || a > b ? b : a - 1; });
    return good;
}

bool clusters() {
    Tensor t = tile({32, 64}, {32, 16});
    std::vector<float> data(32 * 64), got(8 * 32 * 32);
    for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
    float *tensor, *out;
    cudaMalloc(&tensor, data.size() * 4);
    cudaMalloc(&out, got.size() * 4);
    cudaMemcpy(tensor, data.data(), data.size() * 4, cudaMemcpyHostToDevice);
    CUtensorMap map;
    if (!encode(t, tensor, &map)) return false;
    spread<<<8, 64, 4096>>>(map, out);
    if (cudaDeviceSynchronize()) return false;
    cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost);
    for (int b = 0; b < 8; ++b)
        for (int i = 0; i < 1024; ++i)
            if (got[b * 1024 + i] != data[b / 4 * 1024 + i] * float(b % 4 + 1)) return false;
    exchange<<<4, 64>>>(tensor, out);
    if (cudaDeviceSynchronize()) return false;
    cudaMemcpy(got.data(), out, 256 * 4, cudaMemcpyDeviceToHost);
    for (int b = 0; b < 4; ++b)
        for (int i = 0; i < 64; ++i)
            if (got[b * 64 + i] != data[(b ^ 1) * 64 + i] + 1000 * data[i]) return false;
    cudaMemset(out, 0, 256);
    add_rows<<<32, 64>>>(tensor, out);
    cudaMemcpy(got.data(), out, 256, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 64; ++i) {
        float sum = 0;
        for (int b = 0; b < 32; ++b) sum += data[b * 64 + i];
        if (got[i] != sum) return false;
    }
    return true;
}

// What the driver refuses to describe.
bool refusals() {
    unsigned char* data;
    CUtensorMap map;
    cudaMalloc(&data, 1 << 20);
    Tensor narrow = tile({40, 30}, {3, 8}), high = tile({40, 300}, {16, 257}), swizzled = tile({64, 30}, {64, 8}), zero = tile({40, 30}, {16, 8});
    swizzled.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    zero.steps[1] = 0;
    return !encode(narrow, data, &map) && !encode(high, data, &map) && !encode(swizzled, data, &map) && !encode(zero, data, &map) &&
           !encode(tile({40, 30}, {16, 8}), data + 8, &map) && encode(tile({40, 30}, {16, 8}), data, &map);
}

int main(int, char** arguments) {
    const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
    if (is("loads")) return !all_loads();
    if (is("swizzles")) return !all_swizzles();
    if (is("im2col")) return !all_im2col();
    if (is("stores")) return !all_stores();
    if (is("clusters")) return !clusters();
    if (is("refusals")) return !refusals();
    if (is("unaligned")) return !unaligned();
    return 2;
}
