// Products of matrices on tensor cores: numbers of their formats, as doubles, and sums of them.
//
// Products of fp16, bf16, tf32 and fp8 numbers are exact in double; one instruction sums them in double, in ascending k,
// and rounds once, which is more exact than hardware. fp64 is a chain of fused multiply-adds. Integers wrap, or clamp with
// .satfinite: sums of 8-bit products are far below 2^53. tf32 operands lose their low 13 bits.
//
// Matrices are kept in panels of eight rows or columns:
//   A     row r of panel p, step k   at (8 * p + r) * depth + k
//   B     column c of panel p, step k   at (p * depth + k) * 8 + c
//   sums  row r, column c of panels p, q   at ((p * panels of B) + q) * 64 + r * 8 + c
#pragma once

#include "fragment.hpp"

namespace ptxemu {

// Sums of a tile.
constexpr int kTile = 64;

// The elements of an operand. A raw tile is eight rows of 16 bytes, of 32 when they are fp64.
struct Number {
    int bits;
    // Rows of A as they lie: row r goes to a + r * depth.
    void (*rows)(const void* raw, f64* a, int depth);
    // The same with columns of B.
    void (*columns)(const void* raw, f64* b);

    constexpr int per_row() const { return bits == 64 ? 4 : 128 / bits; }
};

namespace numbers {
extern const Number f16, bf16, tf32, e4m3, e5m2, s8, u8, f64;
}

// What the sums are rounded to.
enum class Sum : u8 { f32, f16, s32, s32_saturated, f64 };

// A tile of 8 x 8 elements of 16 bits with rows and columns exchanged.
void transpose_halves(const void* from, void* to);

// sums += a * b.
void multiply_panels(const f64* a, const f64* b, f64* sums, int panels_a, int depth, int panels_b);

// A tile of sums from its registers, of 32 lanes each, and back. `second` is not looked at when one register holds both
// elements of a lane, as with 16 bits.
void read_sums(Sum kind, const void* first, const void* second, f64* tile);
void write_sums(Sum kind, const f64* tile, void* first, void* second);

}  // namespace ptxemu
