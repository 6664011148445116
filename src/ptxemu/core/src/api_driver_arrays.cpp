// The CUDA driver: arrays, copies of rectangles and boxes, textures and surfaces. All are the runtime's.
#include <memory>

#include "arrays.hpp"
#include "driver.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

cudaArray_t runtime_array(CUarray array) { return reinterpret_cast<cudaArray_t>(array); }
cudaMipmappedArray_t runtime_mipmap(CUmipmappedArray mipmap) { return reinterpret_cast<cudaMipmappedArray_t>(mipmap); }

struct DriverFormat {
    CUarray_format format;
    int bits;
    cudaChannelFormatKind kind;
};
constexpr DriverFormat kDriverFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned}, {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned}, {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned}, {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat}, {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
};

CUresult runtime_format(CUarray_format format, unsigned channels, cudaChannelFormatDesc& given) {
    for (const DriverFormat& one : kDriverFormats) {
        if (one.format != format) continue;
        if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
        const auto bits = [&](unsigned channel) { return channel < channels ? one.bits : 0; };
        given = {bits(0), bits(1), bits(2), bits(3), one.kind};
        return CUDA_SUCCESS;
    }
    return lacks_in_driver("an array of format " + std::to_string(format));
}

CUresult describe_array(const Array* array, CUDA_ARRAY3D_DESCRIPTOR& to) {
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const cudaChannelFormatDesc& given = array->format;
    to = {array->extent.width, array->extent.height, array->extent.depth, CU_AD_FORMAT_FLOAT, 0, array->flags};
    for (const int bits : {given.x, given.y, given.z, given.w}) to.NumChannels += bits != 0;
    for (const DriverFormat& one : kDriverFormats)
        if (one.bits == given.x && one.kind == given.f) to.Format = one.format;
    return CUDA_SUCCESS;
}

// One end of a copy: where it begins, and bytes from row to row and from slice to slice.
struct CopyEnd {
    char* begin = nullptr;
    size_t pitch = 0, slice = 0;

    static CopyEnd of(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t pitch, size_t height,
                      size_t x, size_t y, size_t z) {
        CopyEnd end;
        if (type == CU_MEMORYTYPE_ARRAY) {
            const Array* found = array_of(runtime_array(array));
            if (found == nullptr) return {};
            end = {reinterpret_cast<char*>(found->texels.address), found->texels.row_bytes, found->texels.slice_bytes};
        } else {
            char* const memory = type == CU_MEMORYTYPE_HOST ? static_cast<char*>(const_cast<void*>(host)) : static_cast<char*>(pointer_of(device));
            end = {memory, pitch, pitch * height};
        }
        end.begin += z * end.slice + y * end.pitch + x;
        return end;
    }
};

CUresult copy_driver_box(const CUDA_MEMCPY3D& box) {
    const CopyEnd from = CopyEnd::of(box.srcMemoryType, box.srcHost, box.srcDevice, box.srcArray, box.srcPitch, box.srcHeight,
                                     box.srcXInBytes, box.srcY, box.srcZ);
    const CopyEnd to = CopyEnd::of(box.dstMemoryType, box.dstHost, box.dstDevice, box.dstArray, box.dstPitch, box.dstHeight,
                                   box.dstXInBytes, box.dstY, box.dstZ);
    if (from.begin == nullptr || to.begin == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // A pitch of 0 is that of rows without gaps.
    const auto pitch = [&](const CopyEnd& end) { return end.pitch != 0 ? end.pitch : box.WidthInBytes; };
    for (size_t z = 0; z < box.Depth; ++z)
        if (const cudaError_t error = cudaMemcpy2D(to.begin + z * to.slice, pitch(to), from.begin + z * from.slice, pitch(from),
                                                   box.WidthInBytes, box.Height, cudaMemcpyDefault))
            return result_of(error);
    return CUDA_SUCCESS;
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& plane) {
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = plane.srcXInBytes, box.srcY = plane.srcY, box.srcMemoryType = plane.srcMemoryType;
    box.srcHost = plane.srcHost, box.srcDevice = plane.srcDevice, box.srcArray = plane.srcArray, box.srcPitch = plane.srcPitch;
    box.dstXInBytes = plane.dstXInBytes, box.dstY = plane.dstY, box.dstMemoryType = plane.dstMemoryType;
    box.dstHost = plane.dstHost, box.dstDevice = plane.dstDevice, box.dstArray = plane.dstArray, box.dstPitch = plane.dstPitch;
    box.WidthInBytes = plane.WidthInBytes, box.Height = plane.Height, box.Depth = 1;
    return box;
}

// One row of an array, from `at` bytes on. The width is none of a row's business: a copy that leaves it is refused.
CUresult copy_row(CUarray array, size_t at, size_t bytes, void* memory, bool into) {
    const Array* found = array_of(runtime_array(array));
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (at + bytes > found->texels.extent[0] * found->texels.bytes()) return CUDA_ERROR_INVALID_VALUE;
    void* const there = reinterpret_cast<char*>(found->texels.address) + at;
    return result_of(cudaMemcpy(into ? there : memory, into ? memory : there, bytes, cudaMemcpyDefault));
}

CUresult runtime_resource(const CUDA_RESOURCE_DESC& given, cudaResourceDesc& resource) {
    resource = {};
    switch (given.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = runtime_array(given.res.array.hArray);
            return CUDA_SUCCESS;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            resource.resType = cudaResourceTypeMipmappedArray;
            resource.res.mipmap.mipmap = runtime_mipmap(given.res.mipmap.hMipmappedArray);
            return CUDA_SUCCESS;
        case CU_RESOURCE_TYPE_LINEAR:
            resource.resType = cudaResourceTypeLinear;
            resource.res.linear.devPtr = pointer_of(given.res.linear.devPtr);
            resource.res.linear.sizeInBytes = given.res.linear.sizeInBytes;
            return runtime_format(given.res.linear.format, given.res.linear.numChannels, resource.res.linear.desc);
        default:
            resource.resType = cudaResourceTypePitch2D;
            resource.res.pitch2D.devPtr = pointer_of(given.res.pitch2D.devPtr);
            resource.res.pitch2D.width = given.res.pitch2D.width;
            resource.res.pitch2D.height = given.res.pitch2D.height;
            resource.res.pitch2D.pitchInBytes = given.res.pitch2D.pitchInBytes;
            return runtime_format(given.res.pitch2D.format, given.res.pitch2D.numChannels, resource.res.pitch2D.desc);
    }
}

cudaChannelFormatDesc format_of(const cudaResourceDesc& resource) {
    if (resource.resType == cudaResourceTypeLinear) return resource.res.linear.desc;
    if (resource.resType == cudaResourceTypePitch2D) return resource.res.pitch2D.desc;
    cudaArray_t array = resource.res.array.array;
    if (resource.resType == cudaResourceTypeMipmappedArray) cudaGetMipmappedArrayLevel(&array, resource.res.mipmap.mipmap, 0);
    const Array* found = array_of(array);
    return found != nullptr ? found->format : cudaChannelFormatDesc{};
}

cudaTextureDesc runtime_texture(const CUDA_TEXTURE_DESC& given, const cudaChannelFormatDesc& format) {
    cudaTextureDesc texture{};
    for (int axis = 0; axis < 3; ++axis) texture.addressMode[axis] = static_cast<cudaTextureAddressMode>(given.addressMode[axis]);
    texture.filterMode = static_cast<cudaTextureFilterMode>(given.filterMode);
    // Whole numbers of 8 and 16 bits become fractions unless they are asked for as they are.
    const bool fractions = format.f != cudaChannelFormatKindFloat && format.x < 32 && (given.flags & CU_TRSF_READ_AS_INTEGER) == 0;
    texture.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    texture.sRGB = (given.flags & CU_TRSF_SRGB) != 0;
    texture.normalizedCoords = (given.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    texture.seamlessCubemap = (given.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    texture.maxAnisotropy = given.maxAnisotropy;
    texture.mipmapFilterMode = static_cast<cudaTextureFilterMode>(given.mipmapFilterMode);
    texture.mipmapLevelBias = given.mipmapLevelBias;
    texture.minMipmapLevelClamp = given.minMipmapLevelClamp;
    texture.maxMipmapLevelClamp = given.maxMipmapLevelClamp;
    for (int k = 0; k < 4; ++k) texture.borderColor[k] = given.borderColor[k];
    return texture;
}

}  // namespace

extern "C" {

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* given) {
    cudaChannelFormatDesc format{};
    if (const CUresult error = runtime_format(given->Format, given->NumChannels, format)) return error;
    const cudaExtent extent = {given->Width, given->Height, given->Depth};
    return result_of(cudaMalloc3DArray(reinterpret_cast<cudaArray_t*>(array), &format, extent, given->Flags));
}
CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* given) {
    const CUDA_ARRAY3D_DESCRIPTOR box{given->Width, given->Height, 0, given->Format, given->NumChannels, 0};
    return cuArray3DCreate(array, &box);
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* to, CUarray array) {
    return describe_array(array_of(runtime_array(array)), *to);
}
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* to, CUarray array) {
    CUDA_ARRAY3D_DESCRIPTOR box{};
    const CUresult error = cuArray3DGetDescriptor(&box, array);
    if (error == CUDA_SUCCESS) *to = {box.Width, box.Height, box.Format, box.NumChannels};
    return error;
}
CUresult cuArrayDestroy(CUarray array) {
    return array_of(runtime_array(array)) == nullptr ? CUDA_ERROR_INVALID_HANDLE : result_of(cudaFreeArray(runtime_array(array)));
}
CUresult cuMipmappedArrayCreate(CUmipmappedArray* mipmap, const CUDA_ARRAY3D_DESCRIPTOR* given, unsigned levels) {
    cudaChannelFormatDesc format{};
    if (const CUresult error = runtime_format(given->Format, given->NumChannels, format)) return error;
    const cudaExtent extent = {given->Width, given->Height, given->Depth};
    return result_of(cudaMallocMipmappedArray(reinterpret_cast<cudaMipmappedArray_t*>(mipmap), &format, extent, levels, given->Flags));
}
CUresult cuMipmappedArrayGetLevel(CUarray* array, CUmipmappedArray mipmap, unsigned level) {
    return result_of(cudaGetMipmappedArrayLevel(reinterpret_cast<cudaArray_t*>(array), runtime_mipmap(mipmap), level));
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap) { return result_of(cudaFreeMipmappedArray(runtime_mipmap(mipmap))); }

CUresult cuMemcpy3D(const CUDA_MEMCPY3D* box) { return copy_driver_box(*box); }
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* box, CUstream stream) {
    return result_of(submit(stream, work_of(*box, cudaGraphNodeTypeMemcpy), cudaGraphNodeTypeMemcpy, *box));
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* plane) { return copy_driver_box(box_of(*plane)); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* plane) { return cuMemcpy2D(plane); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* plane, CUstream stream) {
    const CUDA_MEMCPY3D box = box_of(*plane);
    return cuMemcpy3DAsync(&box, stream);
}
CUresult cuMemcpyHtoA(CUarray to, size_t at, const void* from, size_t bytes) {
    return copy_row(to, at, bytes, const_cast<void*>(from), true);
}
CUresult cuMemcpyAtoH(void* to, CUarray from, size_t at, size_t bytes) { return copy_row(from, at, bytes, to, false); }
CUresult cuMemcpyDtoA(CUarray to, size_t at, CUdeviceptr from, size_t bytes) {
    return copy_row(to, at, bytes, pointer_of(from), true);
}
CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t at, size_t bytes) {
    return copy_row(from, at, bytes, pointer_of(to), false);
}
CUresult cuMemcpyAtoA(CUarray to, size_t to_at, CUarray from, size_t at, size_t bytes) {
    const Array* source = array_of(runtime_array(from));
    if (source == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (at + bytes > source->texels.extent[0] * source->texels.bytes()) return CUDA_ERROR_INVALID_VALUE;
    return copy_row(to, to_at, bytes, reinterpret_cast<char*>(source->texels.address) + at, true);
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* description,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
    cudaResourceDesc of_runtime{};
    if (const CUresult error = runtime_resource(*resource, of_runtime)) return error;
    if (view != nullptr) return lacks_in_driver("a texture that views its memory in another format");
    const cudaTextureDesc same = runtime_texture(*description, format_of(of_runtime));
    return result_of(cudaCreateTextureObject(reinterpret_cast<cudaTextureObject_t*>(texture), &of_runtime, &same, nullptr));
}
CUresult cuTexObjectDestroy(CUtexObject texture) { return result_of(cudaDestroyTextureObject(texture)); }
CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
    cudaResourceDesc of_runtime{};
    if (const CUresult error = runtime_resource(*resource, of_runtime)) return error;
    return result_of(cudaCreateSurfaceObject(reinterpret_cast<cudaSurfaceObject_t*>(surface), &of_runtime));
}
CUresult cuSurfObjectDestroy(CUsurfObject surface) { return result_of(cudaDestroySurfaceObject(surface)); }

}  // extern "C"
