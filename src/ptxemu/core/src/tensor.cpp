// Tensor-core operations, and the matrix loads and stores that feed them.
//
// Products of fp16, bf16, tf32 and fp8 numbers are exact in double; one instruction sums them in double and rounds
// once, which is more exact than hardware. fp64 is a chain of fused multiply-adds in ascending k. Integers wrap, or
// clamp with .satfinite. tf32 operands lose their low 13 bits.
//
// Operands of an mma: [0] shape, [1] flags, [3] start of the registers in Function::extra (d, a, b, c), immediate its
// cost. Operands of a matrix load or store: [0] shape and element width, [1] part, layout and number of registers,
// [2] stride, [3] the registers, [5] the address.
#include <algorithm>

#include "access.hpp"
#include "element.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

constexpr int kLargest = 32 * 16;  // elements of the largest operand

Extent extent_of(u32 shape) {
    return {static_cast<int>(shape & 255), static_cast<int>(shape >> 8 & 255), static_cast<int>(shape >> 16 & 255)};
}

// c += a * b with row-major matrices; N columns.
template <int N>
void accumulate(const f64* a, const f64* b, f64* c, int m, int k) {
    for (int row = 0; row < m; ++row) {
        f64 sum[N];
        std::copy_n(c + row * N, N, sum);
        for (int step = 0; step < k; ++step) {
            const f64 factor = a[row * k + step];
            for (int column = 0; column < N; ++column) sum[column] = std::fma(factor, b[step * N + column], sum[column]);
        }
        std::copy_n(sum, N, c + row * N);
    }
}

void accumulate(const f64* a, const f64* b, f64* c, Extent extent) {
    switch (extent.n) {
        case 8: accumulate<8>(a, b, c, extent.m, extent.k); break;
        case 16: accumulate<16>(a, b, c, extent.m, extent.k); break;
        case 32: accumulate<32>(a, b, c, extent.m, extent.k); break;
    }
}

constexpr u32 kSaturate = 1, kHalfAddend = 2, kHalfResult = 4;

int count(Part part, Extent extent, int bits) { return fragment(part, extent, bits).registers; }

// Rounds the sums into the result's registers.
template <class Round>
void scatter(const Warp& warp, const u32* registers, Extent extent, const f64* sums, Round round) {
    const Fragment& where = fragment(Part::c, extent, 32);
    for (int r = 0; r < where.registers; ++r) {
        u32* lanes = warp.lanes<u32>(registers[r]);
        const u16* place = where.of(r, 0);
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = round(sums[place[lane]]);
    }
}

void scatter_halves(const Warp& warp, const u32* registers, Extent extent, const f64* sums) {
    const Fragment& where = fragment(Part::c, extent, 16);
    for (int r = 0; r < where.registers; ++r) {
        u32* lanes = warp.lanes<u32>(registers[r]);
        const u16 *low = where.of(r, 0), *high = where.of(r, 1);
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] = u32{narrow_f16(to_odd(sums[high[lane]])).bits} << 16 | narrow_f16(to_odd(sums[low[lane]])).bits;
    }
}

template <class A, class B>
void multiply(Warp& warp, const Instruction& i, u32, const pred*) {
    const Extent extent = extent_of(i.operand[0]);
    const u32 flags = i.operand[1];
    const u32* registers = register_list(warp, i);
    alignas(64) f64 a[kLargest], b[kLargest], sums[kLargest];
    const u32* next = registers + count(Part::c, extent, flags & kHalfResult ? 16 : 32);
    next += gather<A>(warp, next, Part::a, extent, a);
    next += gather<B>(warp, next, Part::b, extent, b);
    if (flags & kHalfAddend) {
        gather<f16>(warp, next, Part::c, extent, sums);
    } else {
        const Fragment& where = fragment(Part::c, extent, 32);
        for (int r = 0; r < where.registers; ++r)
            for (int lane = 0; lane < kLanes; ++lane) sums[where.of(r, 0)[lane]] = warp.lanes<f32>(next[r])[lane];
    }
    accumulate(a, b, sums, extent);
    if (flags & kHalfResult)
        scatter_halves(warp, registers, extent, sums);
    else
        scatter(warp, registers, extent, sums, [](f64 sum) { return bits<u32>(static_cast<f32>(sum)); });
}

// Sums of 8-bit products are far below 2^53: exact in double, the addend's 32 bits included.
template <class A, class B>
void multiply_integers(Warp& warp, const Instruction& i, u32, const pred*) {
    const Extent extent = extent_of(i.operand[0]);
    const u32* registers = register_list(warp, i);
    alignas(64) f64 a[kLargest], b[kLargest], sums[kLargest];
    const u32* next = registers + count(Part::c, extent, 32);
    next += gather<A>(warp, next, Part::a, extent, a);
    next += gather<B>(warp, next, Part::b, extent, b);
    const Fragment& where = fragment(Part::c, extent, 32);
    for (int r = 0; r < where.registers; ++r)
        for (int lane = 0; lane < kLanes; ++lane) sums[where.of(r, 0)[lane]] = warp.lanes<s32>(next[r])[lane];
    accumulate(a, b, sums, extent);
    const bool saturate = i.operand[1] & kSaturate;
    scatter(warp, registers, extent, sums, [saturate](f64 sum) {
        const s64 whole = static_cast<s64>(sum);
        return static_cast<u32>(saturate ? std::clamp<s64>(whole, -0x80000000ll, 0x7fffffffll) : whole);
    });
}

void multiply_doubles(Warp& warp, const Instruction& i, u32, const pred*) {
    const Extent extent = extent_of(i.operand[0]);
    const u32* registers = register_list(warp, i);
    const Fragment& where = fragment(Part::c, extent, 64);
    alignas(64) f64 a[kLargest], b[kLargest], sums[kLargest];
    const u32* next = registers + where.registers;
    next += gather<f64>(warp, next, Part::a, extent, a);
    next += gather<f64>(warp, next, Part::b, extent, b);
    gather<f64>(warp, next, Part::c, extent, sums);
    accumulate(a, b, sums, extent);
    for (int r = 0; r < where.registers; ++r)
        for (int lane = 0; lane < kLanes; ++lane) warp.lanes<f64>(registers[r])[lane] = sums[where.of(r, 0)[lane]];
}

// What wmma.load and wmma.store share: where the elements of each register lie in memory.
class MatrixAccess {
public:
    MatrixAccess(Warp& warp, const Instruction& i, u32 active)
        : warp_(warp),
          instruction_(i),
          active_(active),
          bits_(static_cast<int>(i.operand[0] >> 24)),
          fragment_(fragment(static_cast<Part>(i.operand[1] & 3), extent_of(i.operand[0]), bits_)),
          by_columns_((i.operand[1] & 4) != 0),
          registers_(static_cast<int>(i.operand[1] >> 8)) {
        read_addresses(warp, i.operand[5], (i.flags & kWideAddress) != 0, i.immediate, base_);
        // Elements of one register are neighbours along rows of A and C, along columns of B.
        contiguous_ = fragment_.per_register == 1 || by_columns_ == ((i.operand[1] & 3) == static_cast<u32>(Part::b));
    }

    int distinct() const { return fragment_.registers; }
    int registers() const { return registers_; }
    int pieces() const { return contiguous_ ? 1 : fragment_.per_register; }
    u32 piece_bytes() const { return static_cast<u32>(bits_ / 8 * (contiguous_ ? fragment_.per_register : 1)); }

    Access open(int reg, int piece, Op op) const {
        alignas(64) u64 address[kLanes];
        const u16* place = fragment_.of(reg, piece);
        const u32* stride = warp_.lanes<u32>(instruction_.operand[2]);
        for (int lane = 0; lane < kLanes; ++lane) {
            const u64 row = place[lane] / fragment_.columns, column = place[lane] % fragment_.columns;
            const u64 index = by_columns_ ? column * stride[lane] + row : row * stride[lane] + column;
            address[lane] = base_[lane] + index * static_cast<u64>(bits_ / 8);
        }
        const Space space = static_cast<Space>(instruction_.extra);
        if (space == Space::shared)
            for (u64& one : address) one = static_cast<u32>(one);
        return open_addresses(warp_, instruction_, space, address, active_, piece_bytes(), op, instruction_.memory);
    }

private:
    Warp& warp_;
    const Instruction& instruction_;
    u32 active_;
    int bits_;
    const Fragment& fragment_;
    bool by_columns_, contiguous_;
    int registers_;
    alignas(64) u64 base_[kLanes];
};

template <class Lane>
void load_fragment(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const MatrixAccess matrix(warp, i, active);
    const u32* registers = register_list(warp, i);
    for (int r = 0; r < matrix.distinct(); ++r) {
        Lane value[kLanes] = {};
        for (int piece = 0; piece < matrix.pieces(); ++piece) {
            const Access access = matrix.open(r, piece, Op::load);
            if (access.pattern == Pattern::fault) return;
            for_each_lane(active, [&](int lane) {
                u8* start = reinterpret_cast<u8*>(&value[lane]) + static_cast<u32>(piece) * matrix.piece_bytes();
                std::memcpy(start, access.pointer[lane], matrix.piece_bytes());
            });
        }
        for (int copy = r; copy < matrix.registers(); copy += matrix.distinct()) {
            Lane* lanes = warp.lanes<Lane>(registers[copy]);
            for_each_lane(active, [&](int lane) { lanes[lane] = value[lane]; });
        }
    }
}

template <class Lane>
void store_fragment(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const MatrixAccess matrix(warp, i, active);
    const u32* registers = register_list(warp, i);
    for (int r = 0; r < matrix.distinct(); ++r) {
        const Lane* lanes = warp.lanes<Lane>(registers[r]);
        for (int piece = 0; piece < matrix.pieces(); ++piece) {
            const Access access = matrix.open(r, piece, Op::store);
            if (access.pattern == Pattern::fault) return;
            for_each_lane(active, [&](int lane) {
                const u8* start = reinterpret_cast<const u8*>(&lanes[lane]) + static_cast<u32>(piece) * matrix.piece_bytes();
                std::memcpy(access.pointer[lane], start, matrix.piece_bytes());
            });
        }
    }
}

// Element pair of a lane in an 8x8 matrix of 16-bit elements: 2 * (lane % 4) and the next of row lane / 4, or of that
// column when transposed.
template <bool Transposed>
void pair_places(int lane, int (&row)[2], int (&column)[2]) {
    for (int which = 0; which < 2; ++which) {
        const int across = lane % 4 * 2 + which;
        row[which] = Transposed ? across : lane / 4;
        column[which] = Transposed ? lane / 4 : across;
    }
}

// Lane 8 * k + r points at row r of matrix k: eight 16-bit elements.
template <int Matrices>
Access open_rows(Warp& warp, const Instruction& i, Op op) {
    alignas(64) u64 address[kLanes];
    read_addresses(warp, i.operand[5], (i.flags & kWideAddress) != 0, i.immediate, address);
    for (u64& one : address) one = static_cast<u32>(one);
    const u32 pointing = Matrices == 4 ? kAllLanes : (1u << 8 * Matrices % 32) - 1;
    return open_addresses(warp, i, Space::shared, address, pointing, 16, op, i.memory);
}

template <int Matrices, bool Transposed>
void load_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    const Access access = open_rows<Matrices>(warp, i, Op::load);
    if (access.pattern == Pattern::fault) return;
    for (int matrix = 0; matrix < Matrices; ++matrix) {
        u16 element[8][8];
        for (int row = 0; row < 8; ++row) std::memcpy(element[row], access.pointer[8 * matrix + row], 16);
        u32* destination = warp.lanes<u32>(registers[matrix]);
        for (int lane = 0; lane < kLanes; ++lane) {
            int row[2], column[2];
            pair_places<Transposed>(lane, row, column);
            destination[lane] = static_cast<u32>(element[row[1]][column[1]]) << 16 | element[row[0]][column[0]];
        }
    }
}

template <int Matrices, bool Transposed>
void store_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    const Access access = open_rows<Matrices>(warp, i, Op::store);
    if (access.pattern == Pattern::fault) return;
    for (int matrix = 0; matrix < Matrices; ++matrix) {
        const u32* source = warp.lanes<u32>(registers[matrix]);
        for (int lane = 0; lane < kLanes; ++lane) {
            int row[2], column[2];
            pair_places<Transposed>(lane, row, column);
            for (int which = 0; which < 2; ++which) {
                const u16 value = static_cast<u16>(source[lane] >> 16 * which);
                std::memcpy(access.pointer[8 * matrix + row[which]] + 2 * column[which], &value, sizeof value);
            }
        }
    }
}

// movmatrix.trans: an 8x8 matrix from the lanes' registers to the lanes' registers.
void transpose_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* source = warp.lanes<u32>(i.operand[1]);
    u16 element[8][8];
    for (int lane = 0; lane < kLanes; ++lane)
        for (int which = 0; which < 2; ++which)
            element[lane / 4][lane % 4 * 2 + which] = static_cast<u16>(source[lane] >> 16 * which);
    u32* destination = warp.lanes<u32>(i.operand[0]);
    for (int lane = 0; lane < kLanes; ++lane) {
        const int row = lane / 4, column = lane % 4 * 2;
        destination[lane] = static_cast<u32>(element[column + 1][row]) << 16 | element[column][row];
    }
}

}  // namespace

#define EMU_MATRICES(name, function)                           \
    {name "_x1", Kind::warp, function<1, false>},             \
    {name "_x2", Kind::warp, function<2, false>},             \
    {name "_x4", Kind::warp, function<4, false>},             \
    {name "_trans_x1", Kind::warp, function<1, true>},        \
    {name "_trans_x2", Kind::warp, function<2, true>},        \
    {name "_trans_x4", Kind::warp, function<4, true>}

const std::vector<Operation>& tensor_operations() {
    static const std::vector<Operation> table = {
        {"mma_f16_f16", Kind::warp, multiply<f16, f16>},
        {"mma_bf16_bf16", Kind::warp, multiply<bf16, bf16>},
        {"mma_tf32_tf32", Kind::warp, multiply<tf32, tf32>},
        {"mma_e4m3_e4m3", Kind::warp, multiply<e4m3, e4m3>},
        {"mma_e4m3_e5m2", Kind::warp, multiply<e4m3, e5m2>},
        {"mma_e5m2_e4m3", Kind::warp, multiply<e5m2, e4m3>},
        {"mma_e5m2_e5m2", Kind::warp, multiply<e5m2, e5m2>},
        {"mma_s8_s8", Kind::warp, multiply_integers<s8, s8>},
        {"mma_s8_u8", Kind::warp, multiply_integers<s8, u8>},
        {"mma_u8_s8", Kind::warp, multiply_integers<u8, s8>},
        {"mma_u8_u8", Kind::warp, multiply_integers<u8, u8>},
        {"mma_f64_f64", Kind::warp, multiply_doubles},
        {"wmma_load_32", Kind::warp, load_fragment<u32>},
        {"wmma_load_64", Kind::warp, load_fragment<u64>},
        {"wmma_store_32", Kind::warp, store_fragment<u32>},
        {"wmma_store_64", Kind::warp, store_fragment<u64>},
        EMU_MATRICES("ldmatrix", load_matrix),
        EMU_MATRICES("stmatrix", store_matrix),
        {"movmatrix_trans", Kind::warp, transpose_matrix},
    };
    return table;
}

}  // namespace ptxemu
