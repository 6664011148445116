// What optimised programs use beyond plain kernels: each feature computes something on the device, compares it with the
// host's own result and prints "ok NAME" or "wrong NAME"; the test knows which names to expect.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <functional>
#include <numeric>
#include <vector>

namespace cg = cooperative_groups;

template <class T>
struct Device {
    T* data;
    size_t count;
    explicit Device(const std::vector<T>& host) : count(host.size()) {
        cudaMalloc(&data, count * sizeof(T));
        cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
    }
    std::vector<T> back() const {
        std::vector<T> host(count);
        cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost);
        return host;
    }
    ~Device() { cudaFree(data); }
};

void report(const char* name, bool good) {
    good = good && cudaDeviceSynchronize() == cudaSuccess;
    std::printf("%s %s\n", good ? "ok" : "wrong", name);
}

std::vector<int> numbers(int n) {
    std::vector<int> result(n);
    for (int i = 0; i < n; ++i) result[i] = (i * 7919 + 13) % 1000;
    return result;
}

// --- calls
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ __noinline__ bool odd(int n);
__device__ __noinline__ bool even(int n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(int n) { return n != 0 && even(n - 1); }
struct Wide {
    int a;
    double b;
    float c[5];
};
__device__ __noinline__ Wide widen(Wide in, float scale) {
    Wide out = in;
    for (int k = 0; k < 5; ++k) out.c[k] = in.c[k] * scale + static_cast<float>(in.b);
    out.a += 7;
    return out;
}
// Every activation has an array of its own, and hands its address down.
__device__ __noinline__ int collect(int depth, int* parent) {
    int mine[4] = {depth, depth * 2, depth * 3, depth * 4};
    if (parent != nullptr) parent[depth & 3] += depth;
    const int below = depth > 0 ? collect(depth - 1, mine) : 0;
    return below + mine[0] + mine[1] + mine[2] + mine[3];
}
int collect_on_host(int depth, int* parent) {
    int mine[4] = {depth, depth * 2, depth * 3, depth * 4};
    if (parent != nullptr) parent[depth & 3] += depth;
    const int below = depth > 0 ? collect_on_host(depth - 1, mine) : 0;
    return below + mine[0] + mine[1] + mine[2] + mine[3];
}
__device__ int plus_one(int x) { return x + 1; }
__device__ int times_three(int x) { return x * 3; }
__device__ int (*const operations[2])(int) = {plus_one, times_three};
struct Shape {
    __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
    __device__ int area(int x) const override { return x * x; }
};
__global__ void calls(int* out, float* wide) {
    const int i = threadIdx.x;
    out[i] = factorial(i % 9) + (odd(i) ? 1000000 : 0);
    out[64 + i] = operations[i & 1](i);
    const Square square;
    const Shape plain;
    const Shape* shape = i % 3 == 0 ? &square : &plain;
    out[128 + i] = shape->area(i);
    out[192 + i] = collect(i % 7, nullptr);
    const Wide result = widen({i, 0.5, {1, 2, 3, 4, static_cast<float>(i)}}, 2.0f);
    wide[i] = result.c[4] + result.c[0] + result.a;
}
void check_calls() {
    Device<int> out(std::vector<int>(256));
    Device<float> wide(std::vector<float>(64));
    calls<<<1, 64>>>(out.data, wide.data);
    const std::vector<int> got = out.back();
    const std::vector<float> floats = wide.back();
    bool recursion = true, pointers = true, virtuals = true, arrays = true, structs = true;
    for (int i = 0; i < 64; ++i) {
        int product = 1;
        for (int k = 2; k <= i % 9; ++k) product *= k;
        recursion &= got[i] == product + (i % 2 ? 1000000 : 0);
        pointers &= got[64 + i] == (i % 2 ? i * 3 : i + 1);
        virtuals &= got[128 + i] == (i % 3 == 0 ? i * i : i);
        arrays &= got[192 + i] == collect_on_host(i % 7, nullptr);
        structs &= floats[i] == (i * 2.0f + 0.5f) + 2.5f + (i + 7);
    }
    report("recursion", recursion);
    report("function_pointers", pointers);
    report("virtual_functions", virtuals);
    report("arrays_of_activations", arrays);
    report("structs_by_value", structs);
}

// --- cooperative groups
__global__ void grid_rounds(int* data, int n) {
    const auto grid = cg::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    for (int round = 0; round < 4; ++round) {
        const int next = data[(i + 1) % n];
        grid.sync();
        data[i] = next + 1;
        grid.sync();
    }
}
void check_grid() {
    int n = 20 * 64;
    std::vector<int> host(n);
    std::iota(host.begin(), host.end(), 0);
    Device<int> data(host);
    void* arguments[] = {&data.data, &n};
    bool good = cudaLaunchCooperativeKernel((void*)grid_rounds, dim3(20), dim3(64), arguments, 0, nullptr) == cudaSuccess;
    const std::vector<int> got = data.back();
    for (int i = 0; i < n; ++i) good &= got[i] == (i + 4) % n + 4;
    report("grid_sync", good);
    const cudaError_t refused =
        cudaLaunchCooperativeKernel((void*)grid_rounds, dim3(1 << 20), dim3(64), arguments, 0, nullptr);
    report("cooperative_limit", refused == cudaErrorCooperativeLaunchTooLarge && cudaGetLastError() == refused);
}
__global__ void groups(const int* in, int* out) {
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    const int i = threadIdx.x, value = in[i];
    out[i] = cg::reduce(tile, value, cg::plus<int>());
    out[128 + i] = cg::inclusive_scan(tile, value);
    out[256 + i] = -1;
    if (value % 3 == 0) {
        const auto some = cg::coalesced_threads();
        out[256 + i] = cg::reduce(some, value, cg::greater<int>()) * 100 + static_cast<int>(some.size());
    }
    const auto labelled = cg::labeled_partition(cg::tiled_partition<32>(block), value & 3);
    out[384 + i] = static_cast<int>(labelled.size()) * 100 + labelled.shfl(value, 0) % 100;
    __shared__ int staged[128];
    cg::memcpy_async(block, staged, in, sizeof staged);
    cg::wait(block);
    out[512 + i] = staged[127 - i];
}
void check_groups() {
    const std::vector<int> in = numbers(128);
    Device<int> source(in), out(std::vector<int>(640));
    groups<<<1, 128>>>(source.data, out.data);
    const std::vector<int> got = out.back();
    bool tiles = true, coalesced = true, labelled = true, copies = true;
    for (int i = 0; i < 128; ++i) {
        const int first = i / 8 * 8, warp = i / 32 * 32;
        tiles &= got[i] == std::accumulate(&in[first], &in[first] + 8, 0);
        tiles &= got[128 + i] == std::accumulate(&in[first], &in[i] + 1, 0);
        int largest = -1, members = 0, alike = 0, leader = -1;
        for (int k = warp; k < warp + 32; ++k) {
            if (in[k] % 3 == 0) largest = std::max(largest, in[k]), ++members;
            if ((in[k] & 3) == (in[i] & 3)) {
                if (alike++ == 0) leader = in[k];
            }
        }
        coalesced &= got[256 + i] == (in[i] % 3 == 0 ? largest * 100 + members : -1);
        labelled &= got[384 + i] == alike * 100 + leader % 100;
        copies &= got[512 + i] == in[127 - i];
    }
    report("tiles", tiles);
    report("coalesced_groups", coalesced);
    report("labelled_groups", labelled);
    report("group_memcpy_async", copies);
}

// --- asynchronous copies and barriers
__global__ void pipeline(const float* in, float* out, int n) {
    __shared__ __align__(16) float stage[2][128];
    const int i = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][4 * i], in + 4 * i, 16);
    __pipeline_commit();
    float sum = 0;
    for (int step = 0; step < n; ++step) {
        if (step + 1 < n) __pipeline_memcpy_async(&stage[(step + 1) & 1][4 * i], in + 128 * (step + 1) + 4 * i, 16, step == 2 ? 8 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int k = 0; k < 4; ++k) sum += stage[step & 1][(i * 4 + k + 1) % 128];
        __syncthreads();
    }
    out[i] = sum;
}
__global__ void producer_consumer(const int* in, int* out) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier full, empty;
    __shared__ int box[64];
    if (threadIdx.x == 0) init(&full, 128), init(&empty, 128);
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < 5; ++round) {
        if (threadIdx.x < 64) {
            empty.arrive_and_wait();
            box[threadIdx.x] = in[threadIdx.x] + round;
            (void)full.arrive();
        } else {
            (void)empty.arrive();
            full.arrive_and_wait();
            sum += box[127 - threadIdx.x];
        }
    }
    if (threadIdx.x >= 64) out[threadIdx.x - 64] = sum;
}
void check_copies() {
    std::vector<float> in(128 * 6);
    for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k % 97);
    Device<float> source(in), out(std::vector<float>(32));
    pipeline<<<1, 32>>>(source.data, out.data, 6);
    const std::vector<float> got = out.back();
    bool good = true;
    for (int i = 0; i < 32; ++i) {
        float sum = 0;
        for (int step = 0; step < 6; ++step)
            for (int k = 1; k <= 4; ++k) {
                const int at = (i * 4 + k) % 128;
                // In step 3 the last eight bytes of each copy are filled with zeros.
                sum += step == 3 && at % 4 >= 2 ? 0 : in[128 * step + at];
            }
        good &= got[i] == sum;
    }
    report("pipeline_with_zero_fill", good);
    const std::vector<int> values = numbers(64);
    Device<int> from(values), to(std::vector<int>(64));
    producer_consumer<<<1, 128>>>(from.data, to.data);
    const std::vector<int> sums = to.back();
    good = true;
    for (int i = 0; i < 64; ++i) good &= sums[i] == 5 * values[63 - i] + 10;
    report("barriers_of_producer_and_consumer", good);
}

// --- atomics
__global__ void atomics(float4* quad, float2* pair, __half2* half, __nv_bfloat162* brain, __half* single, int* word) {
    atomicAdd(quad, make_float4(1, 2, 3, 4));
    atomicAdd(pair, make_float2(0.5f, 1.5f));
    atomicAdd(half, __floats2half2_rn(1, 2));
    atomicAdd(brain, __floats2bfloat162_rn(2, 1));
    atomicAdd(single, __float2half(0.25f));
    cuda::atomic_ref<int, cuda::thread_scope_device> counter(*word);
    counter.fetch_add(2, cuda::std::memory_order_relaxed);
    counter.fetch_max(5);
    asm volatile("red.global.max.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" ::"l"(half + 4), "r"(0x4400u + threadIdx.x));
}
void check_atomics() {
    Device<float4> quad(std::vector<float4>(1));
    Device<float2> pair(std::vector<float2>(1));
    Device<unsigned> half(std::vector<unsigned>(8)), brain(std::vector<unsigned>(1));
    Device<unsigned short> single(std::vector<unsigned short>(2));
    Device<int> word(std::vector<int>(1));
    atomics<<<2, 32>>>(quad.data, pair.data, (__half2*)half.data, (__nv_bfloat162*)brain.data, (__half*)single.data, word.data);
    const float4 q = quad.back()[0];
    const float2 p = pair.back()[0];
    report("vector_atomics", q.x == 64 && q.y == 128 && q.z == 192 && q.w == 256 && p.x == 32 && p.y == 96 &&
                                 half.back()[4] == 0x441fu && half.back()[7] == 0x441fu);
    report("half_atomics", half.back()[0] == 0x58005400u && brain.back()[0] == 0x42804300u && single.back()[0] == 0x4c00);
    report("atomic_ref", word.back()[0] == 128);
}

// --- cub
__global__ void cub_blocks(const int* in, int* out, unsigned* sorted) {
    using Reduce = cub::BlockReduce<int, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
    using Warp = cub::WarpReduce<int>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
        typename Warp::TempStorage warp[4];
    } scratch;
    int value[4], before;
    for (int k = 0; k < 4; ++k) value[k] = in[threadIdx.x * 4 + k];
    const int sum = Reduce(scratch.reduce).Sum(value);
    __syncthreads();
    Scan(scratch.scan).ExclusiveSum(value[0], before);
    __syncthreads();
    const int largest = Warp(scratch.warp[threadIdx.x / 32]).Reduce(value[1], cuda::maximum<>{});
    __syncthreads();
    unsigned key[4];
    for (int k = 0; k < 4; ++k) key[k] = static_cast<unsigned>(value[k]);
    Sort(scratch.sort).Sort(key);
    for (int k = 0; k < 4; ++k) sorted[threadIdx.x * 4 + k] = key[k];
    out[threadIdx.x] = before;
    if (threadIdx.x == 0) out[128] = sum;
    if (threadIdx.x % 32 == 0) out[129 + threadIdx.x / 32] = largest;
}
void check_cub() {
    const std::vector<int> in = numbers(512);
    Device<int> source(in), out(std::vector<int>(133));
    Device<unsigned> sorted(std::vector<unsigned>(512));
    cub_blocks<<<1, 128>>>(source.data, out.data, sorted.data);
    const std::vector<int> got = out.back();
    std::vector<unsigned> order(in.begin(), in.end());
    std::sort(order.begin(), order.end());
    bool scan = true, warps = true;
    for (int i = 0, sum = 0; i < 128; sum += in[4 * i++]) scan &= got[i] == sum;
    for (int warp = 0; warp < 4; ++warp) {
        int largest = 0;
        for (int lane = 0; lane < 32; ++lane) largest = std::max(largest, in[(warp * 32 + lane) * 4 + 1]);
        warps &= got[129 + warp] == largest;
    }
    report("cub_block_reduce", got[128] == std::accumulate(in.begin(), in.end(), 0));
    report("cub_block_scan", scan);
    report("cub_warp_reduce", warps);
    report("cub_block_radix_sort", sorted.back() == order);
    size_t bytes = 0;
    void* scratch = nullptr;
    cub::DeviceReduce::Sum(nullptr, bytes, source.data, out.data, 512);
    cudaMalloc(&scratch, bytes);
    const cudaError_t error = cub::DeviceReduce::Sum(scratch, bytes, source.data, out.data, 512);
    report("cub_device_reduce", error == cudaSuccess && out.back()[0] == std::accumulate(in.begin(), in.end(), 0));
}

// --- the runtime
__constant__ float weights[4];
__device__ int total = 5;
__global__ void symbols(float* out) { out[threadIdx.x] = weights[threadIdx.x] + atomicAdd(&total, 1) * 0; }
__global__ void large_shared(int* out) {
    extern __shared__ int big[];
    for (int k = threadIdx.x; k < 50000; k += blockDim.x) big[k] = k;
    __syncthreads();
    out[threadIdx.x] = big[49999 - threadIdx.x];
}
__global__ void both_shared(int* out) {
    __shared__ int beside[256];
    extern __shared__ int big[];
    for (int k = threadIdx.x; k < 12288; k += blockDim.x) big[k] = k;
    beside[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = big[12287 - threadIdx.x] + beside[255 - threadIdx.x];
}
__global__ void clocks(long long* out) {
    out[0] = clock64();
    __nanosleep(1000);
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    out[1] = clock64();
    out[2] = static_cast<long long>(now);
    out[3] = clock();
}
void check_runtime() {
    const float values[4] = {1, 2, 3, 4};
    int after = 0;
    void* address = nullptr;
    Device<float> out(std::vector<float>(4));
    cudaMemcpyToSymbol(weights, values, sizeof values);
    symbols<<<1, 4>>>(out.data);
    cudaMemcpyFromSymbol(&after, total, sizeof after);
    cudaGetSymbolAddress(&address, total);
    int through = 0;
    cudaMemcpy(&through, address, sizeof through, cudaMemcpyDeviceToHost);
    report("symbols", out.back() == std::vector<float>(values, values + 4) && after == 9 && through == 9);

    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    int *memory = nullptr, last = 0;
    cudaEventRecord(begin, stream);
    bool good = cudaMallocAsync((void**)&memory, 1024 * sizeof(int), stream) == cudaSuccess;
    const int bytes = 50000 * sizeof(int);
    large_shared<<<1, 256, bytes, stream>>>(memory);
    good &= cudaGetLastError() == cudaErrorInvalidValue;
    good &= cudaFuncSetAttribute(large_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess;
    large_shared<<<1, 256, bytes, stream>>>(memory);
    cudaEventRecord(end, stream);
    cudaStreamWaitEvent(stream, end, 0);
    good &= cudaMemcpyAsync(&last, memory + 255, sizeof last, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
    cudaStreamSynchronize(stream);
    float elapsed = 0;
    cudaEventElapsedTime(&elapsed, begin, end);
    report("large_shared_memory", good && last == 49999 - 255);
    const int all = 48 * 1024;  // together with what is static more than a block gets that has not asked
    both_shared<<<1, 256, all, stream>>>(memory);
    good = cudaGetLastError() == cudaErrorInvalidValue;
    good &= cudaFuncSetAttribute(both_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, all) == cudaSuccess;
    both_shared<<<1, 256, all, stream>>>(memory);
    good &= cudaMemcpyAsync(&last, memory + 255, sizeof last, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
    cudaStreamSynchronize(stream);
    report("static_beside_dynamic_shared_memory", good && last == 12287 - 255);
    report("streams_and_events", elapsed > 0 && cudaFreeAsync(memory, stream) == cudaSuccess);

    Device<long long> times(std::vector<long long>(4));
    clocks<<<1, 1>>>(times.data);
    const std::vector<long long> got = times.back();
    report("clocks", got[1] > got[0] && got[2] > got[0] && got[3] >= got[1]);
}

// --- fp8
__global__ void eighths(const float* in, float* out) {
    const int i = threadIdx.x;
    out[i] = static_cast<float>(__nv_fp8_e4m3(in[i]));
    out[64 + i] = static_cast<float>(__nv_fp8_e5m2(in[i]));
}
void check_eighths() {
    std::vector<float> in(64);
    for (int i = 0; i < 64; ++i) in[i] = std::ldexp(1.0f + 0.37f * (i % 5), i - 32) * (i % 2 ? -1 : 1);
    Device<float> source(in), out(std::vector<float>(128));
    eighths<<<1, 64>>>(source.data, out.data);
    const std::vector<float> got = out.back();
    bool good = true;
    for (int i = 0; i < 64; ++i) {
        good &= got[i] == static_cast<float>(__nv_fp8_e4m3(in[i]));
        good &= got[64 + i] == static_cast<float>(__nv_fp8_e5m2(in[i]));
    }
    report("fp8", good);
}

int main() {
    check_calls();
    check_grid();
    check_groups();
    check_copies();
    check_atomics();
    check_cub();
    check_runtime();
    check_eighths();
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) std::printf("left over: %s\n", cudaGetErrorName(error));
}
