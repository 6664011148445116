// What programs take from the CUDA driver through the runtime: entry points, and tensor maps.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime.hpp"
#include "tensor_map.hpp"

namespace ptxemu {

std::string complaint(const TensorMap& map) {
    const u32 row = map.row_bytes();
    if (map.address % 16 != 0) return "its address is not a multiple of 16";
    for (u32 d = 0; d + 1 < map.rank; ++d)
        if (map.strides[d] % 16 != 0 || map.strides[d] >> 40 != 0) return "a stride is not a multiple of 16 below 2^40";
    for (u32 d = 0; d < map.rank; ++d)
        if (map.steps[d] == 0 || map.steps[d] > 8) return "an element stride is not among 1 to 8";
    for (u32 d = 0; d < (map.im2col ? 1 : map.rank); ++d)
        if (map.box[d] == 0 || map.box[d] > 256) return "a box extent is not among 1 to 256";
    if (map.im2col && (map.box[1] == 0 || map.box[1] > 1024)) return "pixels per column are not among 1 to 1024";
    if (row % 16 != 0) return "a row of the box is not a multiple of 16 bytes";
    if (map.pieces > 1 && row > 16u * map.pieces) return "a row of the box is longer than the swizzle";
    return "";
}

namespace {

constexpr u8 kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr ElementType kElementTypes[] = {
    ElementType::u8_,  ElementType::u16_, ElementType::u32_, ElementType::s32_,  ElementType::u64_, ElementType::s64_, ElementType::f16_,
    ElementType::f32_, ElementType::f64_, ElementType::bf16_, ElementType::f32_, ElementType::f32_, ElementType::f32_};

CUresult lacks(const char* what) {
    runtime().lacks(what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

// What tiled and im2col maps have in common.
struct Common {
    CUtensorMapDataType type;
    u32 rank;
    void* address;
    const cuuint64_t *extents, *strides;
    const cuuint32_t* steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapFloatOOBfill fill;
};

CUresult fill_in(const Common& from, u32 least_rank, TensorMap& map) {
    if (from.rank < least_rank || from.rank > kMostRank) return CUDA_ERROR_INVALID_VALUE;
    if (static_cast<u32>(from.type) >= std::size(kElementBytes)) return lacks("a tensor map of packed elements");
    if (from.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return lacks("an interleaved tensor map");
    if (from.swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return lacks("a tensor map of this swizzle");
    map.magic = TensorMap::kMagic;
    map.address = reinterpret_cast<u64>(from.address);
    map.rank = static_cast<u8>(from.rank);
    map.element_bytes = kElementBytes[from.type];
    map.type = kElementTypes[from.type];
    map.pieces = static_cast<u8>(1u << from.swizzle);
    map.fills_nan = from.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    for (u32 d = 0; d < from.rank; ++d) {
        if (from.extents[d] == 0 || from.extents[d] > u64{1} << 32) return CUDA_ERROR_INVALID_VALUE;
        map.last[d] = static_cast<u32>(from.extents[d] - 1);
        map.steps[d] = static_cast<u8>(std::min<cuuint32_t>(from.steps[d], 255));
        if (d + 1 < from.rank) map.strides[d] = from.strides[d];
    }
    return CUDA_SUCCESS;
}

CUresult deliver(const TensorMap& map, CUtensorMap* to) {
    if (const std::string what = complaint(map); !what.empty()) {
        std::fprintf(stderr, "ptxcudart: no tensor map: %s\n", what.c_str());
        return CUDA_ERROR_INVALID_VALUE;
    }
    *to = {};
    std::memcpy(to, &map, sizeof map);
    return CUDA_SUCCESS;
}

// A function of the driver by its plain name, in its newest version.
void* driver_function(const char* name) {
    // Of this library, whoever has loaded it.
    static void* const self = [] {
        Dl_info own{};
        return dladdr(reinterpret_cast<void*>(&cuInit), &own) != 0 ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    }();
    if (self == nullptr || std::strncmp(name, "cu", 2) != 0) return nullptr;
    for (const char* version : {"_v4", "_v3", "_v2", ""})
        if (void* const found = dlsym(self, (name + std::string(version)).c_str())) return found;
    return nullptr;
}

cudaError_t find_entry_point(const char* name, void** function, cudaDriverEntryPointQueryResult* result) {
    *function = driver_function(name);
    const bool known = *function != nullptr;
    if (result != nullptr) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return known ? cudaSuccess : runtime().lacks(std::string("the driver's function ") + name);
}

}  // namespace

}  // namespace ptxemu

extern "C" {

using namespace ptxemu;

CUresult cuTensorMapEncodeTiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    TensorMap map{};
    const Common common{type, rank, address, extents, strides, steps, interleave, swizzle, fill};
    if (const CUresult error = fill_in(common, 1, map)) return error;
    for (u32 d = 0; d < rank; ++d) map.box[d] = static_cast<u16>(std::min<cuuint32_t>(box[d], 0xffff));
    return deliver(map, to);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* extents, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill fill) {
    TensorMap map{};
    const Common common{type, rank, address, extents, strides, steps, interleave, swizzle, fill};
    if (const CUresult error = fill_in(common, 3, map)) return error;
    map.im2col = true;
    map.box[0] = static_cast<u16>(std::min<cuuint32_t>(channels, 0xffff));
    map.box[1] = static_cast<u16>(std::min<cuuint32_t>(pixels, 0xffff));
    for (u32 d = 0; d + 2 < rank; ++d) {
        map.lower[d] = static_cast<s16>(lower[d]);
        map.upper[d] = static_cast<s16>(upper[d]);
    }
    return deliver(map, to);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* to, void* address) {
    TensorMap map;
    std::memcpy(&map, to, sizeof map);
    if (!map.valid()) return CUDA_ERROR_INVALID_VALUE;
    map.address = reinterpret_cast<u64>(address);
    return deliver(map, to);
}

CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* result) {
    *function = driver_function(name);
    const bool known = *function != nullptr;
    if (result != nullptr) *result = known ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (known) return CUDA_SUCCESS;
    runtime().lacks(std::string("the driver's function ") + name);
    return CUDA_ERROR_NOT_FOUND;
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
    return find_entry_point(name, function, result);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    return find_entry_point(name, function, result);
}

}  // extern "C"
