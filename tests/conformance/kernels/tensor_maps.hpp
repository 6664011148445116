// Tensor maps and mbarriers of the programs with bulk copies and warpgroup products.
#pragma once

#include "conformance.hpp"

#include <cuda.h>

namespace conformance {

// Rows of elements, tiles of box_rows x box_columns; `planes`: a third dimension, of boxes of one plane.
struct Tiling {
    CUtensorMapDataType type;
    unsigned size;  // bytes of an element
    size_t rows, columns;
    unsigned box_rows, box_columns;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    size_t planes = 0;
};

inline CUtensorMap tensor_map(void* data, const Tiling& tiling) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found), "looking for the driver");
#else
    check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found), "looking for the driver");
#endif
    const cuuint64_t extents[] = {tiling.columns, tiling.rows, tiling.planes};
    const cuuint64_t row_bytes = tiling.columns * tiling.size, strides[] = {row_bytes, row_bytes * tiling.rows};
    const cuuint32_t box[] = {tiling.box_columns, tiling.box_rows, 1}, steps[] = {1, 1, 1};
    CUtensorMap map;
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
    const CUresult error = encode(&map, tiling.type, tiling.planes != 0 ? 3 : 2, data, extents, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, tiling.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    check(error == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "encoding a tensor map");
    return map;
}

__device__ inline unsigned shared_at(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ inline void barrier_init(uint64_t* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(barrier)), "r"(count) : "memory");
}
__device__ inline void barriers_are_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(barrier)) : "memory");
}
__device__ inline void barrier_expect(uint64_t* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(barrier)), "r"(bytes) : "memory");
}
__device__ inline void barrier_wait(uint64_t* barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(shared_at(barrier)),
        "r"(parity)
        : "memory");
}
__device__ inline void load_tile(void* to, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_at(to)),
        "l"(map), "r"(column), "r"(row), "r"(shared_at(barrier))
        : "memory");
}

}  // namespace conformance
