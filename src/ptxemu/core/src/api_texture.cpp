// Arrays, and the texture and surface objects that kernels reach them by.
#include <algorithm>
#include <memory>
#include <set>

#include "arrays.hpp"
#include "streams.hpp"

namespace ptxemu {
namespace {

constexpr u64 kRowAlignment = 32;

std::set<const Array*>& arrays() {
    static std::set<const Array*> all;
    return all;
}

bool channel_of(const cudaChannelFormatDesc& format, Texels& texels) {
    const int bits[] = {format.x, format.y, format.z, format.w};
    for (int k = 0; k < 4; ++k) texels.bits[k] = static_cast<u32>(bits[k]);
    const u32 bytes = texels.bytes();
    const bool whole = std::all_of(bits, bits + 4, [&](int one) { return one == 0 || (one == bits[0] && one % 8 == 0); });
    if (!whole || bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) != 0) return false;
    switch (format.f) {
        case cudaChannelFormatKindSigned: texels.channel = Channel::of_signed; return true;
        case cudaChannelFormatKindUnsigned: texels.channel = Channel::of_unsigned; return true;
        case cudaChannelFormatKindFloat: texels.channel = Channel::of_float; return bits[0] != 8;
        default: return false;
    }
}

}  // namespace

const Array* array_of(cudaArray_const_t handle) {
    const Array* array = reinterpret_cast<const Array*>(handle);
    return arrays().count(array) != 0 ? array : nullptr;
}

}  // namespace ptxemu

namespace {

using namespace ptxemu;

cudaError_t invalid() { return runtime().fail(cudaErrorInvalidValue); }

cudaError_t make_array(cudaArray_t* handle, const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags) {
    constexpr unsigned kKnown = cudaArrayLayered | cudaArrayCubemap | cudaArraySurfaceLoadStore | cudaArrayTextureGather;
    constexpr size_t kFaces = 6;
    if ((flags & ~kKnown) != 0) return runtime().lacks("an array with flags " + std::to_string(flags));
    auto array = std::make_unique<Array>(Array{{}, format, extent, flags});
    Texels& texels = array->texels;
    if (!channel_of(format, texels)) return runtime().lacks("an array of this channel format");
    if (extent.width == 0) return invalid();
    const bool cube = (flags & cudaArrayCubemap) != 0, layered = cube || (flags & cudaArrayLayered) != 0;
    const bool faces = extent.depth % kFaces == 0 && (extent.depth == kFaces || (flags & cudaArrayLayered) != 0);
    if (cube && (extent.width != extent.height || extent.depth == 0 || !faces)) return invalid();
    texels.layers = layered ? extent.depth : 0;
    const u64 extents[] = {extent.width, std::max<u64>(extent.height, 1), layered ? 1 : std::max<u64>(extent.depth, 1)};
    std::copy_n(extents, 3, texels.extent);
    texels.row_bytes = (extent.width * texels.bytes() + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    texels.slice_bytes = texels.row_bytes * texels.extent[1];
    void* memory = nullptr;
    const u64 slices = layered ? std::max<u64>(extent.depth, 1) : texels.extent[2];
    if (const cudaError_t error = cudaMalloc(&memory, texels.slice_bytes * slices)) return error;
    texels.address = reinterpret_cast<u64>(memory);
    arrays().insert(array.get());
    *handle = reinterpret_cast<cudaArray_t>(array.release());
    return cudaSuccess;
}

// A place in an array, in bytes from the left and in rows.
char* place(const Array& array, size_t across, size_t down) {
    return reinterpret_cast<char*>(array.texels.address + down * array.texels.row_bytes + across);
}

bool fits(const Array* array, size_t across, size_t down, size_t width, size_t height) {
    return array != nullptr && across + width <= array->texels.extent[0] * array->texels.bytes() &&
           down + height <= array->texels.extent[1];
}

cudaError_t to_array(cudaArray_t handle, size_t across, size_t down, const void* from, size_t pitch, size_t width,
                     size_t height, cudaMemcpyKind kind) {
    const Array* array = array_of(handle);
    if (!fits(array, across, down, width, height)) return invalid();
    return cudaMemcpy2D(place(*array, across, down), array->texels.row_bytes, from, pitch, width, height, kind);
}

cudaError_t from_array(void* to, size_t pitch, cudaArray_const_t handle, size_t across, size_t down, size_t width,
                       size_t height, cudaMemcpyKind kind) {
    const Array* array = array_of(handle);
    if (!fits(array, across, down, width, height)) return invalid();
    return cudaMemcpy2D(to, pitch, place(*array, across, down), array->texels.row_bytes, width, height, kind);
}

// Calls `copy(column, row, offset, bytes)` for the parts of a run of bytes that wraps from row to row.
template <class Copy>
cudaError_t each_row(cudaArray_const_t handle, size_t across, size_t down, size_t bytes, Copy copy) {
    const Array* array = array_of(handle);
    if (array == nullptr) return invalid();
    const size_t width = array->texels.extent[0] * array->texels.bytes();
    for (size_t done = 0; done < bytes;) {
        const size_t part = std::min(bytes - done, width - across);
        if (const cudaError_t error = copy(across, down, done, part)) return error;
        done += part, across = 0, ++down;
    }
    return cudaSuccess;
}

bool linear(const cudaResourceDesc& resource, Texels& texels) {
    const auto& given = resource.res.linear;
    if (!channel_of(given.desc, texels)) return false;
    texels.address = reinterpret_cast<u64>(given.devPtr);
    texels.extent[0] = given.sizeInBytes / texels.bytes();
    texels.extent[1] = texels.extent[2] = 1;
    texels.row_bytes = texels.slice_bytes = given.sizeInBytes;
    return true;
}

bool pitched(const cudaResourceDesc& resource, Texels& texels) {
    const auto& given = resource.res.pitch2D;
    if (!channel_of(given.desc, texels)) return false;
    texels.address = reinterpret_cast<u64>(given.devPtr);
    texels.extent[0] = given.width;
    texels.extent[1] = given.height;
    texels.extent[2] = 1;
    texels.row_bytes = given.pitchInBytes;
    texels.slice_bytes = given.pitchInBytes * given.height;
    return true;
}

cudaError_t use_array(cudaArray_t handle, Texture& texture) {
    const Array* array = array_of(handle);
    if (array == nullptr) return invalid();
    texture.texels = array->texels;
    texture.cube = (array->flags & cudaArrayCubemap) != 0;
    return cudaSuccess;
}

cudaError_t use_mipmap(cudaMipmappedArray_t handle, Texture& texture) {
    const Mipmap* mipmap = mipmap_of(handle);
    if (mipmap == nullptr) return invalid();
    for (const cudaArray_t level : mipmap->levels) texture.levels.push_back(array_of(level)->texels);
    return use_array(mipmap->levels.front(), texture);
}

cudaError_t use_memory(const cudaResourceDesc& resource, Texture& texture) {
    Texels& texels = texture.texels;
    switch (resource.resType) {
        case cudaResourceTypeArray: return use_array(resource.res.array.array, texture);
        case cudaResourceTypeMipmappedArray: return use_mipmap(resource.res.mipmap.mipmap, texture);
        case cudaResourceTypeLinear:
            return linear(resource, texels) ? cudaSuccess : runtime().lacks("a texture of this channel format");
        case cudaResourceTypePitch2D:
            return pitched(resource, texels) ? cudaSuccess : runtime().lacks("a texture of this channel format");
        default: return invalid();
    }
}

Border border_of(cudaTextureAddressMode mode, bool normalized) {
    // Only normalized coordinates go round.
    if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) return Border::clamp;
    return static_cast<Border>(mode);
}

// False where levels of whole numbers were to be mixed.
bool describe_levels(const cudaTextureDesc& given, Texture& texture, bool whole_numbers) {
    texture.linear_between_levels = given.mipmapFilterMode == cudaFilterModeLinear;
    texture.level_bias = given.mipmapLevelBias;
    texture.least_level = given.minMipmapLevelClamp;
    texture.most_level = given.maxMipmapLevelClamp;
    return !texture.linear_between_levels || !whole_numbers || texture.normalized_values;
}

// False where the bits of a colour would have to be taken for a whole number.
bool describe_border(const cudaTextureDesc& given, Texture& texture, bool whole_numbers) {
    std::copy_n(given.borderColor, 4, texture.border_colour);
    const bool black = std::all_of(given.borderColor, given.borderColor + 4, [](float one) { return one == 0; });
    return black || !whole_numbers || texture.normalized_values;
}

}  // namespace

extern "C" {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned flags) {
    return make_array(array, *format, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
    return make_array(array, *format, extent, flags);
}
cudaError_t cudaFreeArray(cudaArray_t handle) {
    if (handle == nullptr) return cudaSuccess;
    const Array* array = array_of(handle);
    if (array == nullptr) return invalid();
    arrays().erase(array);
    const cudaError_t error = cudaFree(reinterpret_cast<void*>(array->texels.address));
    delete array;
    return error;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t handle) {
    const Array* array = array_of(handle);
    if (array == nullptr) return invalid();
    if (format != nullptr) *format = array->format;
    if (extent != nullptr) *extent = array->extent;
    if (flags != nullptr) *flags = array->flags;
    return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t handle) {
    return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(handle));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t across, size_t down, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
    return to_array(array, across, down, from, pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t across, size_t down, const void* from, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return to_array(array, across, down, from, pitch, width, height, kind); });
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t array, size_t across, size_t down,
                                  size_t width, size_t height, cudaMemcpyKind kind) {
    return from_array(to, pitch, array, across, down, width, height, kind);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t array, size_t across, size_t down,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return from_array(to, pitch, array, across, down, width, height, kind); });
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_across, size_t to_down, cudaArray_const_t from,
                                     size_t across, size_t down, size_t width, size_t height, cudaMemcpyKind kind) {
    const Array* source = array_of(from);
    if (!fits(source, across, down, width, height)) return invalid();
    return to_array(to, to_across, to_down, place(*source, across, down), source->texels.row_bytes, width, height, kind);
}
cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t across, size_t down, const void* from, size_t bytes,
                              cudaMemcpyKind kind) {
    return each_row(array, across, down, bytes, [=](size_t column, size_t row, size_t offset, size_t part) {
        return to_array(array, column, row, static_cast<const char*>(from) + offset, part, part, 1, kind);
    });
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t array, size_t across, size_t down, const void* from, size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemcpyToArray(array, across, down, from, bytes, kind); });
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t array, size_t across, size_t down, size_t bytes,
                                cudaMemcpyKind kind) {
    return each_row(array, across, down, bytes, [=](size_t column, size_t row, size_t offset, size_t part) {
        return from_array(static_cast<char*>(to) + offset, part, array, column, row, part, 1, kind);
    });
}
cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t array, size_t across, size_t down, size_t bytes,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemcpyFromArray(to, array, across, down, bytes, kind); });
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* handle, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
    if (view != nullptr) return runtime().lacks("a texture that views its memory in another format");
    Texture texture{};
    if (const cudaError_t error = use_memory(*resource, texture)) return error;
    const cudaTextureDesc& given = *description;
    const Texels& texels = texture.texels;
    if (given.sRGB) return runtime().lacks("a texture of sRGB");
    if (given.seamlessCubemap && texture.cube) return runtime().lacks("a cube map that is filtered across its edges");
    if (given.maxAnisotropy > 1 && !texture.levels.empty()) return runtime().lacks("an anisotropic filter");
    const bool whole_numbers = texels.channel != Channel::of_float;
    texture.normalized_values = given.readMode == cudaReadModeNormalizedFloat && whole_numbers;
    if (texture.normalized_values && texels.bits[0] == 32) return invalid();
    texture.linear_filter = given.filterMode == cudaFilterModeLinear;
    if (texture.linear_filter && whole_numbers && !texture.normalized_values) return invalid();
    if (!texture.levels.empty() && (!given.normalizedCoords || !describe_levels(given, texture, whole_numbers))) return invalid();
    if (!describe_border(given, texture, whole_numbers)) return runtime().lacks("a border whose colour is a whole number");
    texture.normalized_coordinates = given.normalizedCoords != 0 || texture.cube;
    for (int axis = 0; axis < 3; ++axis) texture.border[axis] = border_of(given.addressMode[axis], texture.normalized_coordinates);
    // Beyond the end of linear memory there are zeros.
    if (resource->resType == cudaResourceTypeLinear) {
        texture.border[0] = Border::zero;
        std::fill_n(texture.border_colour, 4, 0.0f);
    }
    *handle = runtime().textures.add(texture);
    return cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) {
    return handle == 0 || runtime().textures.remove(handle) ? cudaSuccess : invalid();
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* handle, const cudaResourceDesc* resource) {
    const Array* array = resource->resType == cudaResourceTypeArray ? array_of(resource->res.array.array) : nullptr;
    if (array == nullptr || (array->flags & cudaArraySurfaceLoadStore) == 0) return invalid();
    Texture surface{};
    surface.texels = array->texels;
    surface.surface = true;
    *handle = runtime().textures.add(surface);
    return cudaSuccess;
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) {
    return handle == 0 || runtime().textures.remove(handle) ? cudaSuccess : invalid();
}

}  // extern "C"
