// Tensor maps: what cuTensorMapEncode puts into the 128 opaque bytes, and which bytes a copy by one of them moves.
//
// The format is this library's own. A box is a number of rows: contiguous elements of the innermost dimension. In shared
// memory rows lie behind each other; with a swizzle each begins at a multiple of its width, and the pieces of 16 bytes of
// a row are exchanged as in matrix_descriptor.hpp, by bits of their address. Elements outside of the tensor are filled
// when they are loaded, and not stored.
//
// Tiles begin at a coordinate and take every `step`-th element along a dimension. Im2col boxes (dimensions: channels,
// one to three of space, images) walk through pixels: along the first dimension of space within a bounding box, then
// along the next, then to the next image; what they take lies at an offset from there. (PTX ISA, tensors.)
#pragma once

#include <algorithm>
#include <string>

#include "types.hpp"

namespace ptxemu {

constexpr u32 kMostRank = 5;
constexpr u64 kTensorMapAlignment = 64;

enum class ElementType : u8 { u8_, u16_, u32_, s32_, u64_, s64_, f16_, f32_, f64_, bf16_ };

struct TensorMap {
    u64 magic;
    u64 address;
    u64 strides[kMostRank - 1];  // bytes, of all dimensions but the innermost
    u32 last[kMostRank];         // extents less one
    u16 box[kMostRank];          // tiled; im2col: [0] channels, [1] pixels
    u8 steps[kMostRank];
    u8 rank, element_bytes;
    ElementType type;
    u8 pieces;  // of 16 bytes in a row of the swizzle: 1 for none, else 2, 4, 8
    bool fills_nan, im2col;
    s16 lower[3], upper[3];  // im2col: corners of the bounding box, relative to those of the tensor

    static constexpr u64 kMagic = 0x70614d726f736e54;  // TnsorMap

    bool valid() const { return magic == kMagic; }
    u32 row_bytes() const { return u32{box[0]} * element_bytes; }
    u32 rows() const;
    // From row to row in shared memory.
    u32 pitch() const { return pieces == 1 ? row_bytes() : std::max(row_bytes(), 16u * pieces); }
    // What a copy counts at its mbarrier: elements outside of the tensor, too.
    u32 bytes() const { return rows() * row_bytes(); }
    u32 shared_bytes() const { return rows() * pitch(); }
};
static_assert(sizeof(TensorMap) <= 128);

// Where a box lies: a map, coordinates, and offsets of an im2col box.
struct TensorBox {
    TensorMap map;
    s32 at[kMostRank];
    u16 offsets[3];

    // Visits rows: visit(offset in shared memory, address of element 0 of the row's place or 0 where all of it is outside,
    // first byte inside, byte behind the last inside).
    template <class Visit>
    void each_row(Visit visit) const;

private:
    struct Row {
        u64 address;
        bool inside;
    };
    Row tile_row(u32 row) const;
    Row pixel_row(u32 row) const;
    Row outside(const s64* coordinates) const;
};

// Whether a map can be made of these; empty when it can, else what is wrong.
std::string complaint(const TensorMap& map);

inline u32 swizzled_offset(u32 offset, u32 pieces) { return offset ^ (offset >> 7 & (pieces - 1)) << 4; }

inline u32 TensorMap::rows() const {
    if (im2col) return box[1];
    u32 count = 1;
    for (u32 d = 1; d < rank; ++d) count *= (box[d] + steps[d] - 1u) / steps[d];
    return count;
}

// The row whose elements, from coordinate 0 on, begin there, given the coordinates of all other dimensions.
inline TensorBox::Row TensorBox::outside(const s64* coordinates) const {
    u64 address = map.address;
    for (u32 d = 1; d < map.rank; ++d) {
        if (coordinates[d] < 0 || coordinates[d] > static_cast<s64>(map.last[d])) return {0, false};
        address += static_cast<u64>(coordinates[d]) * map.strides[d - 1];
    }
    return {address, true};
}

inline TensorBox::Row TensorBox::tile_row(u32 row) const {
    s64 coordinates[kMostRank] = {};
    for (u32 d = 1; d < map.rank; ++d) {
        const u32 count = (map.box[d] + map.steps[d] - 1u) / map.steps[d];
        coordinates[d] = s64{at[d]} + s64{row % count} * map.steps[d];
        row /= count;
    }
    return outside(coordinates);
}

inline TensorBox::Row TensorBox::pixel_row(u32 row) const {
    const u32 images = map.rank - 1, space = map.rank - 2;
    s64 base[kMostRank] = {};
    u64 rest = row;
    for (u32 d = 1; d <= space; ++d) {
        const s64 first = map.lower[d - 1], last = s64{map.last[d]} + map.upper[d - 1], step = map.steps[d];
        const s64 count = std::max<s64>(1, (last - first) / step + 1);
        // Pixels before the first of this line of the bounding box, of which the copy may begin behind some.
        const s64 position = (at[d] - first) / step + static_cast<s64>(rest);
        base[d] = first + (at[d] - first) % step + position % count * step;
        rest = static_cast<u64>(position / count);
    }
    base[images] = s64{at[images]} + static_cast<s64>(rest);
    for (u32 d = 1; d <= space; ++d) base[d] += offsets[d - 1];
    return outside(base);
}

template <class Visit>
void TensorBox::each_row(Visit visit) const {
    const s64 size = map.element_bytes, extent = s64{map.last[0]} + 1;
    const s64 first = std::clamp<s64>(-s64{at[0]}, 0, map.box[0]), end = std::clamp<s64>(extent - at[0], 0, map.box[0]);
    for (u32 row = 0; row < map.rows(); ++row) {
        const Row found = map.im2col ? pixel_row(row) : tile_row(row);
        const bool some = found.inside && first < end;
        visit(row * map.pitch(), some ? found.address + static_cast<u64>(s64{at[0]} * size) : 0,
              some ? static_cast<u32>(first * size) : 0, some ? static_cast<u32>(end * size) : 0);
    }
}

}  // namespace ptxemu
