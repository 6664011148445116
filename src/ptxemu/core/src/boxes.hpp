// Copies of boxes of memory and arrays, which are what a graph's copies are.
#pragma once

#include <driver_types.h>

namespace ptxemu {

cudaError_t copy_box(const cudaMemcpy3DParms& box);

// A copy of bytes, and one of rows, as a box.
cudaMemcpy3DParms box_of_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind);
inline cudaMemcpy3DParms box_of_bytes(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return box_of_rows(to, bytes, from, bytes, bytes, 1, kind);
}

}  // namespace ptxemu
