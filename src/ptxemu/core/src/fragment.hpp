// Where the elements of tensor-core operands lie in the registers of a warp: fragments of `mma` and `wmma`.
//
// With group = lane / 4 and member = lane % 4, and n elements in a register (32 bits over the element's width):
//   A  16 x K   register r holds rows group + 8 * (r % 2), columns n * member .. + n - 1, further by 4n * (r / 2)
//   A   8 x K   register r holds row group, the same columns further by 4n * r
//   B   K x 8   the transpose of the 8-row A
//   C  16 x 8   elements 2j and 2j + 1 of a lane are row group + 8 * j, columns 2 * member and 2 * member + 1
//   C   8 x 8   the same with j = 0 only
// This is what PTX documents for `mma`. What it leaves open for `wmma` is filled with blocks of those, rows before
// columns; fp16 operands A and B of `wmma` take eight registers whatever their size, the surplus repeats the rest.
//
// So a register of A holds a tile, eight rows of 4n elements in the order of the lanes; one of B holds the same with eight
// columns; a tile of C, 8 x 8, lies in one register of 16-bit elements or is spread over two of one element each.
#pragma once

#include "types.hpp"

namespace ptxemu {

enum class Part : u8 { a, b, c };

struct Extent {
    int m, n, k;
};

// Position of an element in its matrix.
struct Place {
    int row, column;
};

// Of elements with so many bits; 64-bit registers hold one, too.
constexpr int per_register(int bits) { return bits >= 32 ? 1 : 32 / bits; }

constexpr int registers_of(Part part, Extent extent, int bits) {
    const int elements = part == Part::a ? extent.m * extent.k : part == Part::b ? extent.k * extent.n : extent.m * extent.n;
    return elements / kLanes / per_register(bits);
}

// Calls visit(first register, top left element) for every tile, registers ascending.
template <class Visit>
inline void each_tile(Part part, Extent extent, int bits, Visit visit) {
    const int per = per_register(bits), block = extent.m == 8 ? 8 : 16;
    int reg = 0;
    if (part == Part::a)
        for (int top = 0; top < extent.m; top += block)
            for (int column = 0; column < extent.k; column += 4 * per)
                for (int row = top; row < top + block; row += 8) visit(reg++, Place{row, column});
    if (part == Part::b)
        for (int column = 0; column < extent.n; column += 8)
            for (int row = 0; row < extent.k; row += 4 * per) visit(reg++, Place{row, column});
    if (part == Part::c)
        for (int column = 0; column < extent.n; column += 8)
            for (int row = 0; row < extent.m; row += 8, reg += 2 / per) visit(reg, Place{row, column});
}

}  // namespace ptxemu
