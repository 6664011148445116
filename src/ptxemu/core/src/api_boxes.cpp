// Boxes of memory and arrays: allocated, filled and copied.
#include "arrays.hpp"
#include "boxes.hpp"
#include "streams.hpp"

namespace {

using namespace ptxemu;

char* corner(const cudaPitchedPtr& memory, const cudaPos& at) {
    return static_cast<char*>(memory.ptr) + (at.z * memory.ysize + at.y) * memory.pitch + at.x;
}

// One side of a copy of a box: where it begins, and bytes from row to row and from slice to slice.
struct Side {
    char* begin;
    size_t pitch, slice;
};

// Widths and places in arrays are in texels, those in memory in bytes.
Side side_of(const Array* array, const cudaPitchedPtr& memory, const cudaPos& at) {
    if (array == nullptr) return {corner(memory, at), memory.pitch, memory.pitch * memory.ysize};
    const Texels& texels = array->texels;
    const u64 begin = texels.address + at.z * texels.slice_bytes + at.y * texels.row_bytes + at.x * texels.bytes();
    return {reinterpret_cast<char*>(begin), texels.row_bytes, texels.slice_bytes};
}

}  // namespace

namespace ptxemu {

cudaError_t copy_box(const cudaMemcpy3DParms& box) {
    const Array *source = array_of(box.srcArray), *target = array_of(box.dstArray);
    if ((box.srcArray != nullptr && source == nullptr) || (box.dstArray != nullptr && target == nullptr))
        return runtime().fail(cudaErrorInvalidValue);
    const Array* const either = source != nullptr ? source : target;
    const size_t width = box.extent.width * (either != nullptr ? either->texels.bytes() : 1);
    const Side to = side_of(target, box.dstPtr, box.dstPos), from = side_of(source, box.srcPtr, box.srcPos);
    for (size_t z = 0; z < box.extent.depth; ++z)
        if (const cudaError_t error = cudaMemcpy2D(to.begin + z * to.slice, to.pitch, from.begin + z * from.slice,
                                                   from.pitch, width, box.extent.height, box.kind))
            return error;
    return cudaSuccess;
}

cudaMemcpy3DParms box_of_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind) {
    cudaMemcpy3DParms box{};
    box.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
    box.dstPtr = {to, to_pitch, width, height};
    box.extent = {width, height, 1};
    box.kind = kind;
    return box;
}

}  // namespace ptxemu

extern "C" {

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* box) { return copy_box(*box); }
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* box, cudaStream_t stream) {
    return submit(stream, [box = *box] { return copy_box(box); }, cudaGraphNodeTypeMemcpy, *box);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
    *memory = {nullptr, 0, extent.width, extent.height};
    return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
    for (size_t z = 0; z < extent.depth; ++z)
        if (const cudaError_t error = cudaMemset2D(corner(memory, {0, 0, z}), memory.pitch, value, extent.width, extent.height))
            return error;
    return cudaSuccess;
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
    return submit(stream, [=] { return cudaMemset3D(memory, value, extent); }, cudaGraphNodeTypeMemset);
}

}  // extern "C"
