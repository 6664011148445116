// wgmma.mma_async: products of matrices in shared memory, for the four warps of a warpgroup.
//
// Each warp multiplies 16 of the 64 rows, when it comes to the instruction: what it reads of shared memory is what lies
// there then, while a GPU may read until the group is waited for. Registers are written at once, too: ptxas inserts the
// waits that those who read them too early lack.
//
// Sums are as exact as those of mma (product.hpp).
//
// Operands: [0] columns and depth, [1] flags, [2] predicate of the addend, [3] registers in Function::extra (d; the
// descriptor of a or its registers; the descriptor of b), [4] member mask; immediate: its cost.
#include "checks.hpp"
#include "matrix_descriptor.hpp"
#include "operations.hpp"
#include "product.hpp"

namespace ptxemu {
namespace {

constexpr u32 kSaturate = 1, kHalfResult = 2, kRegistersA = 4, kAcrossA = 8, kAcrossB = 16, kNegateA = 32,
              kNegateB = 64;
constexpr int kRows = 16, kMostColumns = 256, kMostDepth = 32, kPieceBytes = 16, kWarpsOfGroup = 4;

struct Form {
    int columns, depth;
    u32 flags;
    const u32* registers;
    int results, sources;  // registers of d, and of a

    static Form of(const Warp& warp, const Instruction& i) {
        const int columns = static_cast<int>(i.operand[0] & 0xffff), depth = static_cast<int>(i.operand[0] >> 16);
        const int results = columns / (i.operand[1] & kHalfResult ? 4 : 2);
        return {columns, depth, i.operand[1], register_list(warp, i), results, i.operand[1] & kRegistersA ? 4 : 1};
    }
    const u32* a() const { return registers + results; }
    const u32* b() const { return registers + results + sources; }
};

// Reads pieces of an operand; a piece that shared memory does not hold fails the launch.
class Pieces {
public:
    Pieces(Warp& warp, const Instruction& i, u32 descriptor)
        : warp_(warp), instruction_(i), descriptor_(MatrixDescriptor::of(warp.lanes<u64>(descriptor)[0])) {
        if (BlockChecks* checks = warp.block->checks.get(); checks != nullptr && descriptor_.misplaced())
            checks->memory_fault(warp, i, 0, "misaligned",
                                 "misaligned wgmma operand: the pattern of its swizzle does not begin at shared " +
                                     hexadecimal(descriptor_.start) + ", as its descriptor says");
    }

    const u8* along_k(u32 row, u32 piece) { return at(descriptor_.along_k(row, piece)); }
    const u8* across(u32 column, u32 piece) { return at(descriptor_.across(column, piece)); }

private:
    const u8* at(u32 address) {
        Block& block = *warp_.block;
        if (address + kPieceBytes <= block.shared_bytes) {
            if (block.checks) block.checks->operand(warp_, instruction_, address, kPieceBytes);
            return block.shared.data() + address;
        }
        const std::string message = "out-of-bounds shared read of a wgmma operand at " + hexadecimal(address);
        if (block.checks && !warp_.worker->failed())
            block.checks->memory_fault(warp_, instruction_, 0, "out_of_bounds", message);
        warp_.worker->fail(Fault::illegal_address, instruction_, message);
        static const u8 nothing[kPieceBytes] = {};
        return nothing;
    }

    Warp& warp_;
    const Instruction& instruction_;
    MatrixDescriptor descriptor_;
};

// Tiles of an operand, eight rows of one piece each, as they lie in shared memory.
void read_tile(Pieces& pieces, u32 row, u32 piece, u8 (*tile)[kPieceBytes]) {
    for (u32 r = 0; r < 8; ++r) std::memcpy(tile[r], pieces.along_k(row + r, piece), kPieceBytes);
}

// The same of operands of 16-bit elements that lie across: eight steps along K, each with a piece of eight rows.
void read_tile_across(Pieces& pieces, u32 step, u32 piece, u8 (*tile)[kPieceBytes]) {
    for (u32 k = 0; k < 8; ++k) std::memcpy(tile[k], pieces.across(step + k, piece), kPieceBytes);
}

bool whole_group(Warp& warp, const Instruction& i) {
    ++warp.products;
    if (BlockChecks* checks = warp.block->checks.get()) checks->multiplies(warp, i);
    if ((warp.index | (kWarpsOfGroup - 1)) < warp.block->warps.size()) return true;
    const std::string message = "wgmma by a warpgroup that the block has only a part of";
    warp.worker->fail(Fault::trap, i, message);
    return false;
}

int first_row(const Warp& warp) { return static_cast<int>(warp.index % kWarpsOfGroup) * kRows; }

void negate(f64* matrix, int count) {
    for (int k = 0; k < count; ++k) matrix[k] = -matrix[k];
}

void read_a(Warp& warp, const Instruction& i, const Form& form, const Number& number, f64* a) {
    u8 tile[8][kPieceBytes], straight[8][kPieceBytes];
    const int per = number.per_row(), depth = form.depth;
    if (form.flags & kRegistersA) {
        each_tile(Part::a, {kRows, 8, depth}, number.bits, [&](int reg, Place at) {
            number.rows(warp.lanes<u8>(form.a()[reg]), a + at.row * depth + at.column, depth);
        });
    } else {
        Pieces pieces(warp, i, *form.a());
        for (int row = 0; row < kRows; row += 8)
            for (int k = 0; k < depth; k += per) {
                const u32 first = static_cast<u32>(first_row(warp) + row);
                const bool across = (form.flags & kAcrossA) != 0;
                if (across) {
                    read_tile_across(pieces, static_cast<u32>(k), first / 8, tile);
                    transpose_halves(tile, straight);
                } else {
                    read_tile(pieces, first, static_cast<u32>(k / per), straight);
                }
                number.rows(straight, a + row * depth + k, depth);
            }
    }
    if (form.flags & kNegateA) negate(a, kRows * depth);
}

void read_b(Warp& warp, const Instruction& i, const Form& form, const Number& number, f64* b) {
    u8 tile[8][kPieceBytes];
    const int per = number.per_row();
    Pieces pieces(warp, i, *form.b());
    for (int column = 0; column < form.columns; column += 8)
        for (int k = 0; k < form.depth; k += per, b += 8 * per) {
            if (form.flags & kAcrossB) {
                read_tile_across(pieces, static_cast<u32>(k), static_cast<u32>(column / 8), tile);
                number.rows(tile, b, 8);
            } else {
                read_tile(pieces, static_cast<u32>(column), static_cast<u32>(k / per), tile);
                number.columns(tile, b);
            }
        }
    if (form.flags & kNegateB) negate(b - form.columns * form.depth, form.columns * form.depth);
}

// Visits the tiles of d, each with its registers and where its sums begin.
template <class Visit>
void each_result(const Warp& warp, const Form& form, Sum kind, Visit visit) {
    const int bits = kind == Sum::f16 ? 16 : 32, panels = form.columns / 8;
    each_tile(Part::c, {kRows, form.columns, form.depth}, bits, [&](int reg, Place at) {
        visit(warp.lanes<u8>(form.registers[reg]), warp.lanes<u8>(form.registers[reg + (bits == 32)]),
              (at.row / 8 * panels + at.column / 8) * kTile);
    });
}

bool adds(const Warp& warp, const Instruction& i) { return warp.lanes<pred>(i.operand[2])[0] != 0; }

void multiply(Warp& warp, const Instruction& i, const Number& left, const Number& right, Sum kind) {
    if (!whole_group(warp, i)) return;
    const Form form = Form::of(warp, i);
    alignas(64) f64 a[kRows * kMostDepth], b[kMostDepth * kMostColumns], sums[kRows * kMostColumns];
    read_a(warp, i, form, left, a);
    read_b(warp, i, form, right, b);
    if (warp.worker->failed()) return;
    if (adds(warp, i))
        each_result(warp, form, kind, [&](u8* first, u8* second, int tile) { read_sums(kind, first, second, sums + tile); });
    else
        std::fill_n(sums, kRows * form.columns, 0.0);
    multiply_panels(a, b, sums, kRows / 8, form.depth, form.columns / 8);
    each_result(warp, form, kind, [&](u8* first, u8* second, int tile) { write_sums(kind, sums + tile, first, second); });
}

template <const Number& A, const Number& B>
void multiply_floats(Warp& warp, const Instruction& i, u32, const pred*) {
    multiply(warp, i, A, B, i.operand[1] & kHalfResult ? Sum::f16 : Sum::f32);
}

template <const Number& A, const Number& B>
void multiply_integers(Warp& warp, const Instruction& i, u32, const pred*) {
    multiply(warp, i, A, B, i.operand[1] & kSaturate ? Sum::s32_saturated : Sum::s32);
}

// Single bits: the number of those set in both, over 256 of them.
void multiply_bits(Warp& warp, const Instruction& i, u32, const pred*) {
    if (!whole_group(warp, i)) return;
    constexpr int kWords = 256 / 32;
    const Form form = Form::of(warp, i);
    u32 a[kRows][kWords], b[kMostColumns][kWords];
    const auto rows = [&](u32 descriptor, int first, int count, u32 (*words)[kWords]) {
        Pieces pieces(warp, i, descriptor);
        for (int row = 0; row < count; ++row)
            for (u32 piece = 0; piece < 2; ++piece)
                std::memcpy(words[row] + 4 * piece, pieces.along_k(static_cast<u32>(first + row), piece), kPieceBytes);
    };
    if (form.flags & kRegistersA) {
        for (int lane = 0; lane < kLanes; ++lane)
            for (int r = 0; r < 4; ++r)
                a[lane / 4 + 8 * (r % 2)][lane % 4 + 4 * (r / 2)] = warp.lanes<u32>(form.a()[r])[lane];
    } else {
        rows(*form.a(), first_row(warp), kRows, a);
    }
    rows(*form.b(), 0, form.columns, b);
    if (warp.worker->failed()) return;
    const bool add = adds(warp, i);
    each_tile(Part::c, {kRows, form.columns, form.depth}, 32, [&](int reg, Place at) {
        for (int e = 0; e < 2 * kLanes; ++e) {
            u32& sum = warp.lanes<u32>(form.registers[reg + e % 2])[e / 2];
            const int row = at.row + e / 8, column = at.column + e % 8;
            if (!add) sum = 0;
            for (int word = 0; word < kWords; ++word) sum += popcount(a[row][word] & b[column][word]);
        }
    });
}

void fence(Warp& warp, const Instruction&, u32, const pred*) {
    if (BlockChecks* checks = warp.block->checks.get()) checks->wgmma_fenced(warp);
}

void commit(Warp& warp, const Instruction&, u32, const pred*) {
    warp.committed.push_back(warp.products);
    if (BlockChecks* checks = warp.block->checks.get()) checks->committed(warp);
}

// A product is done when all warps of the group have issued it: until then the warp comes back.
void wait(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32 left = static_cast<u32>(i.immediate), groups = static_cast<u32>(warp.committed.size());
    const u32 awaited = left < groups ? warp.committed[groups - 1 - left] : 0;
    Block& block = *warp.block;
    const u32 first = warp.index / kWarpsOfGroup * kWarpsOfGroup;
    for (u32 w = first; w < first + kWarpsOfGroup && w < block.warps.size(); ++w) {
        if (block.warps[w].products >= awaited) continue;
        warp.retries = warp.starved = true;
        block.closed = {&i, warp.index * kLanes, Block::kNoBarrier};
        return;
    }
    if (BlockChecks* checks = block.checks.get()) checks->waited(warp, left);
}

}  // namespace

const std::vector<Operation>& wgmma_operations() {
    static const std::vector<Operation> table = {
        {"wgmma_f16_f16", Kind::warp, multiply_floats<numbers::f16, numbers::f16>},
        {"wgmma_bf16_bf16", Kind::warp, multiply_floats<numbers::bf16, numbers::bf16>},
        {"wgmma_tf32_tf32", Kind::warp, multiply_floats<numbers::tf32, numbers::tf32>},
        {"wgmma_e4m3_e4m3", Kind::warp, multiply_floats<numbers::e4m3, numbers::e4m3>},
        {"wgmma_e4m3_e5m2", Kind::warp, multiply_floats<numbers::e4m3, numbers::e5m2>},
        {"wgmma_e5m2_e4m3", Kind::warp, multiply_floats<numbers::e5m2, numbers::e4m3>},
        {"wgmma_e5m2_e5m2", Kind::warp, multiply_floats<numbers::e5m2, numbers::e5m2>},
        {"wgmma_s8_s8", Kind::warp, multiply_integers<numbers::s8, numbers::s8>},
        {"wgmma_s8_u8", Kind::warp, multiply_integers<numbers::s8, numbers::u8>},
        {"wgmma_u8_s8", Kind::warp, multiply_integers<numbers::u8, numbers::s8>},
        {"wgmma_u8_u8", Kind::warp, multiply_integers<numbers::u8, numbers::u8>},
        {"wgmma_b1_b1", Kind::warp, multiply_bits},
        {"wgmma_fence", Kind::warp, fence},
        {"wgmma_commit", Kind::warp, commit},
        {"wgmma_wait", Kind::warp, wait},
    };
    return table;
}

}  // namespace ptxemu
