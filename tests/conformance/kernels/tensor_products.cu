// Products by wgmma: how many stages are loaded ahead, by tensor maps or plain loads, shapes of tiles and instructions,
// types, operands in registers, products that overlap, short and long sums. Operands are small whole numbers, so that sums
// are exact however a GPU adds them up.
#include "tensor_maps.hpp"

#include <cuda_fp8.h>

using namespace conformance;

#define REGISTERS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define REGISTERS_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TWO(sign, at) sign(d[at]), sign(d[at + 1])
#define EIGHT(sign, at) TWO(sign, at), TWO(sign, at + 2), TWO(sign, at + 4), TWO(sign, at + 6)
#define OPERANDS_32(sign) EIGHT(sign, 0), EIGHT(sign, 8), EIGHT(sign, 16), EIGHT(sign, 24)
#define OPERANDS_64(sign) OPERANDS_32(sign), EIGHT(sign, 32), EIGHT(sign, 40), EIGHT(sign, 48), EIGHT(sign, 56)
#define OPERANDS_128(sign)                                                                                    \
    OPERANDS_64(sign), EIGHT(sign, 64), EIGHT(sign, 72), EIGHT(sign, 80), EIGHT(sign, 88), EIGHT(sign, 96), \
        EIGHT(sign, 104), EIGHT(sign, 112), EIGHT(sign, 120)

// d += a b for a warpgroup: 32 bytes of 64 rows of a and of N rows of b, both in shared memory.
template <class T, int N>
struct Product;

#define PRODUCT(T, N, COUNT, Sum, sign, shape, types, a, b, more)                                              \
    template <>                                                                                                \
    struct Product<T, N> {                                                                                     \
        using Result = Sum;                                                                                    \
        __device__ static void add(Sum (&d)[COUNT], uint64_t left, uint64_t right) {                            \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N shape "." types " {" REGISTERS_##COUNT "}, " a \
                         ", " b ", 1" more ";"                                                                 \
                         : OPERANDS_##COUNT(sign)                                                              \
                         : "l"(left), "l"(right));                                                             \
        }                                                                                                      \
    };
PRODUCT(__half, 64, 32, float, "+f", "k16", "f32.f16.f16", "%32", "%33", ", 1, 1, 0, 0")
PRODUCT(__half, 128, 64, float, "+f", "k16", "f32.f16.f16", "%64", "%65", ", 1, 1, 0, 0")
PRODUCT(__half, 256, 128, float, "+f", "k16", "f32.f16.f16", "%128", "%129", ", 1, 1, 0, 0")
PRODUCT(__nv_bfloat16, 128, 64, float, "+f", "k16", "f32.bf16.bf16", "%64", "%65", ", 1, 1, 0, 0")
PRODUCT(float, 128, 64, float, "+f", "k8", "f32.tf32.tf32", "%64", "%65", ", 1, 1")
PRODUCT(__nv_fp8_e4m3, 128, 64, float, "+f", "k32", "f32.e4m3.e4m3", "%64", "%65", ", 1, 1")
PRODUCT(signed char, 128, 64, int, "+r", "k32", "s32.s8.s8", "%64", "%65", "")

// The same with a in registers.
__device__ void add_from_registers(float (&d)[64], const unsigned (&a)[4], uint64_t right) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" REGISTERS_64 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
        : OPERANDS_64("+f")
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right));
}

// Rows of 128 bytes, swizzled in groups of eight.
__device__ uint64_t described(const void* tile) {
    const uint64_t address = shared_at(tile);
    return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

__device__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void products_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left>
__device__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

constexpr int kRowBytes = 128;

enum class Loads { maps, plain };
enum class Left { shared, registers };

// How a block works: `Groups` warpgroups that multiply, each 64 rows with N columns, and one more that loads.
template <class T, int N, int Groups, int Stages, int Outstanding = 0, Left left = Left::shared>
struct Shape {
    using Element = T;
    using Result = typename Product<T, N>::Result;
    static constexpr int kN = N, kGroups = Groups, kStages = Stages, kOutstanding = Outstanding;
    static constexpr Left kLeft = left;
    static constexpr int kRows = 64 * Groups, kStep = kRowBytes / static_cast<int>(sizeof(T));
    static constexpr int kThreads = 128 * (Groups + 1), kTileBytes = (kRows + N) * kRowBytes;
    static constexpr unsigned kShared = Stages * kTileBytes;
};

template <class S>
__device__ void put(const typename S::Result* d, typename S::Result* c, int n, int row0, int column0) {
    const int t = threadIdx.x % 128;
    for (int i = 0; i < S::kN / 2; i += 2) {
        const int row = row0 + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = column0 + i / 4 * 8 + t % 4 * 2;
        c[static_cast<size_t>(row) * n + column] = d[i];
        c[static_cast<size_t>(row) * n + column + 1] = d[i + 1];
    }
}

// One stage of a warpgroup: 128 bytes of each row, 32 an instruction.
template <class S>
__device__ void multiply(typename S::Result (&d)[S::kN / 2], const char* left, const char* right) {
    if constexpr (S::kLeft == Left::shared) {
        for (int k = 0; k < kRowBytes; k += 32) Product<typename S::Element, S::kN>::add(d, described(left + k), described(right + k));
    } else {
        const int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4;
        unsigned a[4][4];
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < 4; ++i) {
                const int r = row + i % 2 * 8, byte = k * 32 + i / 2 * 16 + t % 4 * 4;
                a[k][i] = *reinterpret_cast<const unsigned*>(left + r * kRowBytes + (byte ^ r % 8 * 16));
            }
        products_begin();
        for (int k = 0; k < 4; ++k) add_from_registers(d, a[k], described(right + k * 32));
    }
}

// c = a b', tile by tile: rows of b are columns of c. Tiles t, t + gridDim.x, ... are those of a block.
template <class S>
__global__ void __launch_bounds__(S::kThreads) by_maps(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       typename S::Result* c, int n, int steps, int across, int tiles) {
    extern __shared__ __align__(1024) char pool[];
    __shared__ uint64_t full[S::kStages], empty[S::kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < S::kStages; ++s) barrier_init(&full[s], 1), barrier_init(&empty[s], S::kGroups);
        barriers_are_ready();
    }
    __syncthreads();
    const int group = threadIdx.x / 128;
    int at = 0;  // stages used so far
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row0 = tile / across * S::kRows, column0 = tile % across * S::kN;
        if (group == S::kGroups) {
            if (threadIdx.x % 128 != 0) continue;
            for (int k = 0; k < steps; ++k, ++at) {
                const int stage = at % S::kStages;
                if (at >= S::kStages) barrier_wait(&empty[stage], (at / S::kStages - 1) & 1);
                char* const place = pool + stage * S::kTileBytes;
                barrier_expect(&full[stage], S::kTileBytes);
                load_tile(place, &a, k * S::kStep, row0, &full[stage]);
                load_tile(place + S::kRows * kRowBytes, &b, k * S::kStep, column0, &full[stage]);
            }
            continue;
        }
        typename S::Result d[S::kN / 2] = {};
        for (int k = 0; k < steps; ++k, ++at) {
            const int stage = at % S::kStages;
            const char* const place = pool + stage * S::kTileBytes;
            barrier_wait(&full[stage], at / S::kStages & 1);
            products_begin();
            multiply<S>(d, place + group * 64 * kRowBytes, place + S::kRows * kRowBytes);
            products_end();
            products_wait<S::kOutstanding>();
            if (threadIdx.x % 128 == 0 && k >= S::kOutstanding) barrier_arrive(&empty[(at - S::kOutstanding) % S::kStages]);
        }
        products_wait<0>();
        if (S::kOutstanding != 0 && threadIdx.x % 128 == 0 && steps > 0) barrier_arrive(&empty[(at - 1) % S::kStages]);
        put<S>(d, c, n, row0 + group * 64, column0);
    }
}

// All warpgroups load, fence, and multiply: one stage.
template <class S>
__global__ void __launch_bounds__(128 * S::kGroups) by_loads(const char* a, const char* b, typename S::Result* c, int n, int steps, int across) {
    __shared__ __align__(1024) char pool[S::kTileBytes];
    const int row0 = blockIdx.x / across * S::kRows, column0 = blockIdx.x % across * S::kN, group = threadIdx.x / 128;
    const size_t pitch = static_cast<size_t>(steps) * kRowBytes;
    typename S::Result d[S::kN / 2] = {};
    for (int k = 0; k < steps; ++k) {
        for (int i = threadIdx.x; i < (S::kRows + S::kN) * 8; i += 128 * S::kGroups) {
            const int row = i / 8, piece = i % 8;
            const char* const from = row < S::kRows ? a + (row0 + row) * pitch : b + (column0 + row - S::kRows) * pitch;
            *reinterpret_cast<int4*>(pool + row * kRowBytes + (piece ^ row % 8) * 16) =
                *reinterpret_cast<const int4*>(from + static_cast<size_t>(k) * kRowBytes + piece * 16);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        products_begin();
        multiply<S>(d, pool + group * 64 * kRowBytes, pool + S::kRows * kRowBytes);
        products_end();
        products_wait<0>();
        __syncthreads();
    }
    put<S>(d, c, n, row0 + group * 64, column0);
}

template <class T>
constexpr CUtensorMapDataType type_of() {
    if (sizeof(T) == 4) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    return sizeof(T) == 2 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

// -2 to 2.
template <class T>
T* operand(Run& run, size_t count, uint32_t seed) {
    return run.upload<T>(count, [=](size_t i) { return static_cast<T>(static_cast<float>(static_cast<int>(scrambled(i, seed) % 5) - 2)); });
}

// `blocks`: 0 for one a tile.
template <class S>
void product_case(Run& run, int m, int n, int k, Loads loads = Loads::maps, int blocks = 0) {
    using T = typename S::Element;
    T *const a = operand<T>(run, static_cast<size_t>(m) * k, 18), *const b = operand<T>(run, static_cast<size_t>(n) * k, 19);
    const auto c = run.empty<typename S::Result>(static_cast<size_t>(m) * n);
    const int across = n / S::kN, tiles = m / S::kRows * across, steps = k / S::kStep;
    if (loads == Loads::plain) {
        run.call([=] {
            by_loads<S><<<tiles, 128 * S::kGroups>>>(reinterpret_cast<const char*>(a), reinterpret_cast<const char*>(b), c, n, steps, across);
        });
    } else {
        const unsigned step = S::kStep;
        const auto tiling = [=](size_t rows, unsigned box) {
            return Tiling{type_of<T>(), sizeof(T), rows, static_cast<size_t>(k), box, step, CU_TENSOR_MAP_SWIZZLE_128B};
        };
        const CUtensorMap left = tensor_map(a, tiling(m, S::kRows)), right = tensor_map(b, tiling(n, S::kN));
        const auto kernel = by_maps<S>;
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kShared), "asking for shared memory");
        run.call([=] { kernel<<<blocks != 0 ? blocks : tiles, S::kThreads, S::kShared>>>(left, right, c, n, steps, across, tiles); });
    }
    run.output("c", c, static_cast<size_t>(m) * n);
}

// 132 tiles of 128 x 128, one for each SM.
constexpr int kM = 1536, kN = 1408, kK = 2048;

CASE(wgmma_1_stage) { product_case<Shape<__half, 128, 2, 1>>(run, kM, kN, kK); }
CASE(wgmma_2_stages) { product_case<Shape<__half, 128, 2, 2>>(run, kM, kN, kK); }
CASE(wgmma_4_stages) { product_case<Shape<__half, 128, 2, 4>>(run, kM, kN, kK); }
CASE(wgmma_6_stages) { product_case<Shape<__half, 128, 2, 6>>(run, kM, kN, kK); }
CASE(wgmma_overlapping) { product_case<Shape<__half, 128, 2, 4, 1>>(run, kM, kN, kK); }
CASE(wgmma_n64) { product_case<Shape<__half, 64, 2, 4>>(run, kM, kN, kK); }
CASE(wgmma_n256) { product_case<Shape<__half, 256, 2, 4, 1>>(run, kM, 2816, kK); }
CASE(wgmma_one_group) { product_case<Shape<__half, 128, 1, 4>>(run, kM, kN, kK); }
CASE(wgmma_plain_loads) { product_case<Shape<__half, 128, 2, 1>>(run, kM, kN, kK, Loads::plain); }
CASE(wgmma_short_sums) { product_case<Shape<__half, 128, 2, 4>>(run, kM, kN, 128); }
CASE(wgmma_long_sums) { product_case<Shape<__half, 128, 2, 4>>(run, 512, 512, 16384); }
CASE(wgmma_many_tiles) { product_case<Shape<__half, 128, 2, 4>>(run, 3072, 2816, 512); }
CASE(wgmma_persistent) { product_case<Shape<__half, 128, 2, 4>>(run, 3072, 2816, 512, Loads::maps, 132); }
CASE(wgmma_from_registers) { product_case<Shape<__half, 128, 2, 4, 0, Left::registers>>(run, kM, kN, kK); }
CASE(wgmma_bf16) { product_case<Shape<__nv_bfloat16, 128, 2, 4>>(run, kM, kN, kK); }
CASE(wgmma_tf32) { product_case<Shape<float, 128, 2, 4>>(run, kM, kN, 1024); }
CASE(wgmma_e4m3) { product_case<Shape<__nv_fp8_e4m3, 128, 2, 4>>(run, kM, kN, 4096); }
CASE(wgmma_s8) { product_case<Shape<signed char, 128, 2, 4>>(run, kM, kN, 4096); }

CONFORMANCE_MAIN
