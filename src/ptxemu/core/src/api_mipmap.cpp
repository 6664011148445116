// Arrays with mipmaps: an array for each level of detail.
#include <algorithm>
#include <set>

#include "arrays.hpp"

namespace ptxemu {
namespace {

std::set<const Mipmap*>& mipmaps() {
    static std::set<const Mipmap*> all;
    return all;
}

// 0, which says that there is no such axis, stays 0.
size_t halved(size_t extent, unsigned times) { return extent == 0 ? 0 : std::max<size_t>(extent >> times, 1); }

// How many levels there are until all extents are 1.
unsigned levels_of(size_t longest) {
    unsigned levels = 1;
    for (; longest > 1; longest /= 2) ++levels;
    return levels;
}

void release(const Mipmap& mipmap) {
    for (const cudaArray_t level : mipmap.levels) cudaFreeArray(level);
}

}  // namespace

const Mipmap* mipmap_of(cudaMipmappedArray_const_t handle) {
    const auto* mipmap = reinterpret_cast<const Mipmap*>(handle);
    return mipmaps().count(mipmap) != 0 ? mipmap : nullptr;
}

}  // namespace ptxemu

extern "C" {

using namespace ptxemu;

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* handle, const cudaChannelFormatDesc* format,
                                     cudaExtent extent, unsigned count, unsigned flags) {
    // Layers and faces are no axis of an image.
    const bool slices = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
    const unsigned most = levels_of(std::max({extent.width, extent.height, slices ? 0 : extent.depth}));
    auto mipmap = std::make_unique<Mipmap>();
    for (unsigned k = 0; k < std::clamp(count, 1u, most); ++k) {
        const cudaExtent of_level = {halved(extent.width, k), halved(extent.height, k),
                                     slices ? extent.depth : halved(extent.depth, k)};
        cudaArray_t level = nullptr;
        if (const cudaError_t error = cudaMalloc3DArray(&level, format, of_level, flags)) {
            release(*mipmap);
            return error;
        }
        mipmap->levels.push_back(level);
    }
    mipmaps().insert(mipmap.get());
    *handle = reinterpret_cast<cudaMipmappedArray_t>(mipmap.release());
    return cudaSuccess;
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* array, cudaMipmappedArray_const_t handle, unsigned level) {
    const Mipmap* mipmap = mipmap_of(handle);
    if (mipmap == nullptr || level >= mipmap->levels.size()) return runtime().fail(cudaErrorInvalidValue);
    *array = mipmap->levels[level];
    return cudaSuccess;
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t handle) {
    if (handle == nullptr) return cudaSuccess;
    const Mipmap* mipmap = mipmap_of(handle);
    if (mipmap == nullptr) return runtime().fail(cudaErrorInvalidResourceHandle);
    mipmaps().erase(mipmap);
    release(*mipmap);
    delete mipmap;
    return cudaSuccess;
}

}  // extern "C"
