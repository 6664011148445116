// Copies by tensor maps beside loops over the same elements: `tensor_maps CASE` ends with 0 when all agree.
#include "tensor_boxes.hpp"

constexpr int kMostBytes = 32 << 10;

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
    if (is("clusters")) return !clusters();
    if (is("refusals")) return !refusals();
    if (is("unaligned")) return !unaligned();
    return 2;
}
