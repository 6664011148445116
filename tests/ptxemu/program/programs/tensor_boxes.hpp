// Boxes of tensors as the host sees them: what `tensor_maps.cu` and `tensor_stores.cu` compare copies with.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

__device__ unsigned at(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

struct Coordinates {
    int c[5];
    unsigned short offset[3];
};

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

inline bool encode(const Tensor& t, void* data, CUtensorMap* map) {
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

inline unsigned char* device_copy(const std::vector<unsigned char>& bytes) {
    unsigned char* to;
    cudaMalloc(&to, bytes.size());
    cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    return to;
}

inline std::vector<unsigned char> host_copy(const unsigned char* from, size_t bytes) {
    std::vector<unsigned char> to(bytes);
    cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost);
    return to;
}

inline std::vector<unsigned char> numbered(size_t bytes, unsigned seed) {
    std::vector<unsigned char> values(bytes);
    for (size_t i = 0; i < bytes; ++i) values[i] = (unsigned char)((i * 2654435761u + seed * 97u) >> 13);
    return values;
}

inline Tensor tile(std::vector<uint64_t> extents, std::vector<unsigned> box, CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, unsigned size = 4) {
    Tensor t{type, size, extents, box, std::vector<unsigned>(extents.size(), 1)};
    return t;
}
