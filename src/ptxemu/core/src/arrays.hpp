// Arrays as the host knows them.
#pragma once

#include "runtime.hpp"
#include "texture.hpp"

namespace ptxemu {

struct Array {
    Texels texels;
    cudaChannelFormatDesc format;
    cudaExtent extent;  // as it was asked for
    unsigned flags;
};

// An array for each level of detail, each with half the extents of the one before.
struct Mipmap {
    std::vector<cudaArray_t> levels;
};

// Null when there is no such array.
const Array* array_of(cudaArray_const_t handle);
const Mipmap* mipmap_of(cudaMipmappedArray_const_t handle);

}  // namespace ptxemu
