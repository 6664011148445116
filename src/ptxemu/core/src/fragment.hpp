// Where the elements of tensor-core operands lie: fragments of `mma` and `wmma`.
//
// With group = lane / 4 and member = lane % 4, and n elements in a register (32 bits over the element's width):
//   A  16 x K   register r holds rows group + 8 * (r % 2), columns n * member .. + n - 1, further by 4n * (r / 2)
//   A   8 x K   register r holds row group, the same columns further by 4n * r
//   B   K x 8   the transpose of the 8-row A
//   C  16 x 8   elements 2j and 2j + 1 of a lane are row group + 8 * j, columns 2 * member and 2 * member + 1
//   C   8 x 8   the same with j = 0 only
// This is what PTX documents for `mma`. What it leaves open for `wmma` is filled with blocks of those, rows before
// columns; fp16 operands A and B of `wmma` take eight registers whatever their size, the surplus repeats the rest.
#pragma once

#include <vector>

#include "types.hpp"

namespace ptxemu {

enum class Part : u8 { a, b, c };

struct Extent {
    int m, n, k;
};

// For every register, element and lane: the position row * columns + column in the matrix.
struct Fragment {
    int rows = 0, columns = 0;
    int registers = 0;    // distinct ones
    int per_register = 1;
    std::vector<u16> place;  // [(register * per_register + element) * 32 + lane]

    const u16* of(int reg, int element) const {
        return place.data() + static_cast<std::size_t>(reg * per_register + element) * kLanes;
    }
};

// The fragment of one operand; `bits` is the width of an element in its register. Computed once and kept.
const Fragment& fragment(Part part, Extent extent, int bits);

}  // namespace ptxemu
