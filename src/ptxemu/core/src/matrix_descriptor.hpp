// Where wgmma finds an operand in shared memory: what a matrix descriptor says.
//
// Bits of a descriptor, in units of 16 bytes but for the last two: start 0-13, leading dimension offset 16-29, stride
// dimension offset 32-45, base offset 49-51, swizzle 62-63 (none, 128, 64, 32 bytes). Memory is made of pieces of 16
// bytes, eight of which below each other are a core matrix. With w pieces in a row of the swizzle (1, 8, 4, 2):
//   along K     row r, piece c:    r % 8 * 16w + r / 8 * stride + c * (leading where w = 1, else 16)
//   along M, N  column k, piece j: k % 8 * 16w + j % w * 16, and further
//               where w = 1   k / 8 * leading + j * stride
//               else          k / 8 * stride + j / w * leading
// A swizzle exchanges the pieces of a row: address bits from 4 on are xor-ed with those from 7 on, counted from where the
// pattern begins, which the base offset says in rows of 128 bytes. (PTX ISA, matrix descriptor; the CuTe library's
// canonical layouts.)
#pragma once

#include "types.hpp"

namespace ptxemu {

struct MatrixDescriptor {
    u32 start, leading, stride, base, pieces;

    static MatrixDescriptor of(u64 word) {
        constexpr u32 kPieces[] = {1, 8, 4, 2};
        const auto bytes = [&](int bit) { return static_cast<u32>(word >> bit & 0x3fff) << 4; };
        return {bytes(0), bytes(16), bytes(32), static_cast<u32>(word >> 49 & 7) << 7, kPieces[word >> 62]};
    }

    // Whether the pattern of the swizzle begins elsewhere than the base offset says: what is read then is undefined.
    bool misplaced() const { return ((start - base) >> 7 & (pieces - 1)) != 0; }

    // Address of a piece of an operand whose rows lie along K.
    u32 along_k(u32 row, u32 piece) const {
        return swizzled(row % 8 * 16 * pieces + row / 8 * stride + piece * (pieces == 1 ? leading : 16));
    }
    // Address of a piece of an operand whose columns lie along M or N.
    u32 across(u32 column, u32 piece) const {
        const u32 inside = column % 8 * 16 * pieces + piece % pieces * 16;
        if (pieces == 1) return swizzled(inside + column / 8 * leading + piece * stride);
        return swizzled(inside + column / 8 * stride + piece / pieces * leading);
    }

private:
    u32 swizzled(u32 offset) const {
        const u32 address = start + offset;
        return address ^ ((address - base) >> 7 & (pieces - 1)) << 4;
    }
};

}  // namespace ptxemu
