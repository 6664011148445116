// Tensor-core operations, and the matrix loads and stores that feed them.
//
// Operands of an mma: [0] shape, [1] flags, [3] start of the registers in Function::extra (d, a, b, c), immediate its
// cost. Operands of a matrix load or store: [0] shape and element width, [1] part, layout and number of registers,
// [2] stride, [3] the registers, [5] the address.
#include <algorithm>

#include "access.hpp"
#include "operations.hpp"
#include "product.hpp"

namespace ptxemu {
namespace {

constexpr int kMostRows = 32, kMostDepth = 32, kMostSums = 32 * 16;

Extent extent_of(u32 shape) {
    return {static_cast<int>(shape & 255), static_cast<int>(shape >> 8 & 255), static_cast<int>(shape >> 16 & 255)};
}

constexpr u32 kSaturate = 1, kHalfAddend = 2, kHalfResult = 4;

// What mma and wmma.mma multiply: two operands, and an addend and a result of one type of numbers each.
struct Form {
    const Number &a, &b;
    Sum addend, result;
    Extent extent;

    int width(Sum kind) const { return kind == Sum::f16 ? 16 : kind == Sum::f64 ? 64 : 32; }
    int registers(Sum kind) const { return registers_of(Part::c, extent, width(kind)); }
};

template <class Visit>
void each_sum(const Form& form, Sum kind, Visit visit) {
    const int panels = form.extent.n / 8;
    each_tile(Part::c, form.extent, form.width(kind),
              [&](int reg, Place at) { visit(reg, (at.row / 8 * panels + at.column / 8) * kTile); });
}

void multiply(Warp& warp, const Form& form, const u32* registers) {
    const Extent extent = form.extent;
    alignas(64) f64 a[kMostRows * kMostDepth], b[kMostRows * kMostDepth], sums[kMostSums];
    const u32* const left = registers + form.registers(form.result);
    const u32* const right = left + registers_of(Part::a, extent, form.a.bits);
    const u32* const addend = right + registers_of(Part::b, extent, form.b.bits);
    each_tile(Part::a, extent, form.a.bits, [&](int reg, Place at) {
        form.a.rows(warp.lanes<u8>(left[reg]), a + at.row * extent.k + at.column, extent.k);
    });
    each_tile(Part::b, extent, form.b.bits, [&](int reg, Place at) {
        form.b.columns(warp.lanes<u8>(right[reg]), b + (at.column / 8 * extent.k + at.row) * 8);
    });
    each_sum(form, form.addend, [&](int reg, int tile) {
        read_sums(form.addend, warp.lanes<u8>(addend[reg]), warp.lanes<u8>(addend[reg + (form.addend != Sum::f16)]),
                  sums + tile);
    });
    multiply_panels(a, b, sums, extent.m / 8, extent.k, extent.n / 8);
    each_sum(form, form.result, [&](int reg, int tile) {
        write_sums(form.result, sums + tile, warp.lanes<u8>(registers[reg]),
                   warp.lanes<u8>(registers[reg + (form.result != Sum::f16)]));
    });
}

template <const Number& A, const Number& B>
void multiply_floats(Warp& warp, const Instruction& i, u32, const pred*) {
    const Sum addend = i.operand[1] & kHalfAddend ? Sum::f16 : Sum::f32;
    const Sum result = i.operand[1] & kHalfResult ? Sum::f16 : Sum::f32;
    multiply(warp, {A, B, addend, result, extent_of(i.operand[0])}, register_list(warp, i));
}

template <const Number& A, const Number& B>
void multiply_integers(Warp& warp, const Instruction& i, u32, const pred*) {
    const Sum result = i.operand[1] & kSaturate ? Sum::s32_saturated : Sum::s32;
    multiply(warp, {A, B, Sum::s32, result, extent_of(i.operand[0])}, register_list(warp, i));
}

void multiply_doubles(Warp& warp, const Instruction& i, u32, const pred*) {
    multiply(warp, {numbers::f64, numbers::f64, Sum::f64, Sum::f64, extent_of(i.operand[0])}, register_list(warp, i));
}

// What wmma.load and wmma.store share: where the elements of each register lie in memory.
class MatrixAccess {
public:
    MatrixAccess(Warp& warp, const Instruction& i, u32 active)
        : warp_(warp),
          instruction_(i),
          active_(active),
          part_(static_cast<Part>(i.operand[1] & 3)),
          bits_(static_cast<int>(i.operand[0] >> 24)),
          distinct_(registers_of(part_, extent_of(i.operand[0]), bits_)),
          by_columns_((i.operand[1] & 4) != 0),
          registers_(static_cast<int>(i.operand[1] >> 8)) {
        read_addresses(warp, i.operand[5], (i.flags & kWideAddress) != 0, i.immediate, base_);
        // Elements of one register are neighbours along rows of A and C, along columns of B.
        contiguous_ = per() == 1 || by_columns_ == (part_ == Part::b);
        each_tile(part_, extent_of(i.operand[0]), bits_, [&](int reg, Place at) {
            corner_[reg] = at;
            if (part_ == Part::c && per() == 1) corner_[reg + 1] = {at.row, at.column + 1};
        });
    }

    int distinct() const { return distinct_; }
    int registers() const { return registers_; }
    int pieces() const { return contiguous_ ? 1 : per(); }
    u32 piece_bytes() const { return static_cast<u32>(bits_ / 8 * (contiguous_ ? per() : 1)); }

    Access open(int reg, int piece, Op op) const {
        alignas(64) u64 address[kLanes];
        const u32* stride = warp_.lanes<u32>(instruction_.operand[2]);
        // Along the group of a lane, and along its members.
        const bool across = part_ == Part::b;
        const u64 apart = static_cast<u64>(part_ == Part::c ? 2 : per());
        const u64 first = static_cast<u64>(across ? corner_[reg].column : corner_[reg].row);
        const u64 second = static_cast<u64>((across ? corner_[reg].row : corner_[reg].column) + piece);
        const bool steep = by_columns_ == across;
        for (u64 lane = 0; lane < kLanes; ++lane) {
            const u64 group = first + lane / 4, member = second + lane % 4 * apart;
            const u64 index = steep ? group * stride[lane] + member : member * stride[lane] + group;
            address[lane] = base_[lane] + index * static_cast<u64>(bits_ / 8);
        }
        const Space space = static_cast<Space>(instruction_.extra);
        if (space == Space::shared)
            for (u64& one : address) one = static_cast<u32>(one);
        return open_addresses(warp_, instruction_, space, address, active_, piece_bytes(), op, instruction_.memory);
    }

private:
    int per() const { return per_register(bits_); }

    Warp& warp_;
    const Instruction& instruction_;
    u32 active_;
    Part part_;
    int bits_, distinct_;
    bool by_columns_, contiguous_;
    int registers_;
    Place corner_[16];  // the first lane's element of each distinct register
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

// Lane 8 * k + r points at row r of matrix k: eight 16-bit elements.
template <int Matrices>
Access open_rows(Warp& warp, const Instruction& i, Op op) {
    alignas(64) u64 address[kLanes];
    read_addresses(warp, i.operand[5], (i.flags & kWideAddress) != 0, i.immediate, address);
    for (u64& one : address) one = static_cast<u32>(one);
    const u32 pointing = Matrices == 4 ? kAllLanes : (1u << 8 * Matrices % 32) - 1;
    return open_addresses(warp, i, Space::shared, address, pointing, 16, op, i.memory);
}

// A register holds a matrix row by row, which four lanes share.
constexpr std::size_t kRowBytes = 16;

template <int Matrices, bool Transposed>
void load_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    const Access access = open_rows<Matrices>(warp, i, Op::load);
    if (access.pattern == Pattern::fault) return;
    for (int matrix = 0; matrix < Matrices; ++matrix) {
        u8 row[8][kRowBytes];
        for (int r = 0; r < 8; ++r) std::memcpy(row[r], access.pointer[8 * matrix + r], kRowBytes);
        u8* const destination = warp.lanes<u8>(registers[matrix]);
        Transposed ? transpose_halves(row, destination) : static_cast<void>(std::memcpy(destination, row, sizeof row));
    }
}

template <int Matrices, bool Transposed>
void store_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    const Access access = open_rows<Matrices>(warp, i, Op::store);
    if (access.pattern == Pattern::fault) return;
    for (int matrix = 0; matrix < Matrices; ++matrix) {
        u8 row[8][kRowBytes];
        const u8* const source = warp.lanes<u8>(registers[matrix]);
        Transposed ? transpose_halves(source, row) : static_cast<void>(std::memcpy(row, source, sizeof row));
        for (int r = 0; r < 8; ++r) std::memcpy(access.pointer[8 * matrix + r], row[r], kRowBytes);
    }
}

// movmatrix.trans: an 8x8 matrix from the lanes' registers to the lanes' registers.
void transpose_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    transpose_halves(warp.lanes<u8>(i.operand[1]), warp.lanes<u8>(i.operand[0]));
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
        {"mma_f16_f16", Kind::warp, multiply_floats<numbers::f16, numbers::f16>},
        {"mma_bf16_bf16", Kind::warp, multiply_floats<numbers::bf16, numbers::bf16>},
        {"mma_tf32_tf32", Kind::warp, multiply_floats<numbers::tf32, numbers::tf32>},
        {"mma_e4m3_e4m3", Kind::warp, multiply_floats<numbers::e4m3, numbers::e4m3>},
        {"mma_e4m3_e5m2", Kind::warp, multiply_floats<numbers::e4m3, numbers::e5m2>},
        {"mma_e5m2_e4m3", Kind::warp, multiply_floats<numbers::e5m2, numbers::e4m3>},
        {"mma_e5m2_e5m2", Kind::warp, multiply_floats<numbers::e5m2, numbers::e5m2>},
        {"mma_s8_s8", Kind::warp, multiply_integers<numbers::s8, numbers::s8>},
        {"mma_s8_u8", Kind::warp, multiply_integers<numbers::s8, numbers::u8>},
        {"mma_u8_s8", Kind::warp, multiply_integers<numbers::u8, numbers::s8>},
        {"mma_u8_u8", Kind::warp, multiply_integers<numbers::u8, numbers::u8>},
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
