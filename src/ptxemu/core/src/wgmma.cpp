// wgmma.mma_async: products of matrices in shared memory, for the four warps of a warpgroup.
//
// Each warp multiplies 16 of the 64 rows, when it comes to the instruction: what it reads of shared memory is what lies
// there then, while a GPU may read until the group is waited for. Registers are written at once, too: ptxas inserts the
// waits that those who read them too early lack.
//
// Sums are as exact as in tensor.cpp: in double, rounded once per instruction. Integers wrap, or clamp with .satfinite.
//
// Operands: [0] columns and depth, [1] flags, [2] predicate of the addend, [3] registers in Function::extra (d; the
// descriptor of a or its registers; the descriptor of b), [4] member mask; immediate: its cost.
#include "checks.hpp"
#include "element.hpp"
#include "matrix_descriptor.hpp"
#include "operations.hpp"

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

template <class T>
f64 element(const u8* piece, int which) {
    if constexpr (std::is_same_v<T, tf32>) {
        u32 raw;
        std::memcpy(&raw, piece + 4 * which, sizeof raw);
        return Element<tf32>::value(raw, 0);
    } else {
        T value;
        std::memcpy(&value, piece + sizeof(T) * static_cast<std::size_t>(which), sizeof value);
        if constexpr (std::is_integral_v<T>)
            return value;
        else
            return widen(value);
    }
}

// Rows `first` and following of an operand, as depth x count (Transposed) or count x depth numbers.
template <class T, bool Transposed>
void read(Pieces& pieces, bool across, int first, int count, int depth, f64* matrix) {
    constexpr int kPer = kPieceBytes * 8 / Element<T>::bits;
    const auto place = [&](int row, int k) -> f64& { return matrix[Transposed ? k * count + row : row * depth + k]; };
    if (across) {
        for (int k = 0; k < depth; ++k)
            for (int row = 0; row < count; row += kPer) {
                const u8* piece = pieces.across(static_cast<u32>(k), static_cast<u32>((first + row) / kPer));
                for (int e = 0; e < kPer; ++e) place(row + e, k) = element<T>(piece, e);
            }
        return;
    }
    for (int row = 0; row < count; ++row)
        for (int k = 0; k < depth; k += kPer) {
            const u8* piece = pieces.along_k(static_cast<u32>(first + row), static_cast<u32>(k / kPer));
            for (int e = 0; e < kPer; ++e) place(row, k + e) = element<T>(piece, e);
        }
}

// sums += a * b for kRows x depth and depth x columns numbers.
void accumulate(const f64* a, const f64* b, f64* sums, int depth, int columns) {
    constexpr int kWide = 8, kTall = 4;
    for (int column = 0; column < columns; column += kWide)
        for (int row = 0; row < kRows; row += kTall) {
            f64 sum[kTall][kWide];
            for (int r = 0; r < kTall; ++r) std::copy_n(sums + (row + r) * columns + column, kWide, sum[r]);
            for (int k = 0; k < depth; ++k)
                for (int r = 0; r < kTall; ++r) {
                    const f64 factor = a[(row + r) * depth + k];
                    for (int c = 0; c < kWide; ++c) sum[r][c] = std::fma(factor, b[k * columns + column + c], sum[r][c]);
                }
            for (int r = 0; r < kTall; ++r) std::copy_n(sum[r], kWide, sums + (row + r) * columns + column);
        }
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

template <class A>
void read_a(Warp& warp, const Instruction& i, const Form& form, f64* a) {
    if (form.flags & kRegistersA) {
        gather<A>(warp, form.a(), Part::a, {kRows, 8, form.depth}, a);
    } else {
        Pieces pieces(warp, i, *form.a());
        read<A, false>(pieces, (form.flags & kAcrossA) != 0, first_row(warp), kRows, form.depth, a);
    }
    if (form.flags & kNegateA)
        for (int k = 0; k < kRows * form.depth; ++k) a[k] = -a[k];
}

template <class B>
void read_b(Warp& warp, const Instruction& i, const Form& form, f64* b) {
    Pieces pieces(warp, i, *form.b());
    read<B, true>(pieces, (form.flags & kAcrossB) != 0, 0, form.columns, form.depth, b);
    if (form.flags & kNegateB)
        for (int k = 0; k < form.columns * form.depth; ++k) b[k] = -b[k];
}

// Visits the registers of d, each with where its elements lie among the sums.
template <class Visit>
void each_result(const Warp& warp, const Form& form, int bits, Visit visit) {
    const Fragment& where = fragment(Part::c, {kRows, form.columns, form.depth}, bits);
    for (int r = 0; r < form.results; ++r)
        visit(warp.lanes<u32>(form.registers[r]), where.of(r, 0), bits == 16 ? where.of(r, 1) : nullptr);
}

bool adds(const Warp& warp, const Instruction& i) { return warp.lanes<pred>(i.operand[2])[0] != 0; }

template <class A, class B>
void multiply(Warp& warp, const Instruction& i, u32, const pred*) {
    if (!whole_group(warp, i)) return;
    const Form form = Form::of(warp, i);
    const bool half = (form.flags & kHalfResult) != 0;
    alignas(64) f64 a[kRows * kMostDepth], b[kMostDepth * kMostColumns], sums[kRows * kMostColumns];
    read_a<A>(warp, i, form, a);
    read_b<B>(warp, i, form, b);
    if (warp.worker->failed()) return;
    std::fill_n(sums, kRows * form.columns, 0.0);
    if (adds(warp, i))
        each_result(warp, form, half ? 16 : 32, [&](const u32* lanes, const u16* low, const u16* high) {
            for (int lane = 0; lane < kLanes; ++lane) {
                sums[low[lane]] = half ? Element<f16>::value(lanes[lane], 0) : f64{bits<f32>(lanes[lane])};
                if (half) sums[high[lane]] = Element<f16>::value(lanes[lane], 1);
            }
        });
    accumulate(a, b, sums, form.depth, form.columns);
    const auto rounded = [&](int place) { return u32{narrow_f16(to_odd(sums[place])).bits}; };
    each_result(warp, form, half ? 16 : 32, [&](u32* lanes, const u16* low, const u16* high) {
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] = half ? rounded(high[lane]) << 16 | rounded(low[lane])
                               : bits<u32>(static_cast<f32>(sums[low[lane]]));
    });
}

u32 narrowed(s64 sum, bool saturate) {
    return static_cast<u32>(saturate ? std::clamp<s64>(sum, -0x80000000ll, 0x7fffffffll) : sum);
}

template <class A, class B>
void multiply_integers(Warp& warp, const Instruction& i, u32, const pred*) {
    if (!whole_group(warp, i)) return;
    const Form form = Form::of(warp, i);
    alignas(64) f64 a[kRows * kMostDepth], b[kMostDepth * kMostColumns], sums[kRows * kMostColumns];
    read_a<A>(warp, i, form, a);
    read_b<B>(warp, i, form, b);
    if (warp.worker->failed()) return;
    const bool add = adds(warp, i), saturate = (form.flags & kSaturate) != 0;
    each_result(warp, form, 32, [&](const u32* lanes, const u16* place, const u16*) {
        for (int lane = 0; lane < kLanes; ++lane) sums[place[lane]] = add ? static_cast<s32>(lanes[lane]) : 0;
    });
    accumulate(a, b, sums, form.depth, form.columns);
    each_result(warp, form, 32, [&](u32* lanes, const u16* place, const u16*) {
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = narrowed(static_cast<s64>(sums[place[lane]]), saturate);
    });
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
    each_result(warp, form, 32, [&](u32* lanes, const u16* place, const u16*) {
        for (int lane = 0; lane < kLanes; ++lane) {
            u32 sum = add ? lanes[lane] : 0;
            const int row = place[lane] / form.columns, column = place[lane] % form.columns;
            for (int word = 0; word < kWords; ++word) sum += popcount(a[row][word] & b[column][word]);
            lanes[lane] = sum;
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
        {"wgmma_f16_f16", Kind::warp, multiply<f16, f16>},
        {"wgmma_bf16_bf16", Kind::warp, multiply<bf16, bf16>},
        {"wgmma_tf32_tf32", Kind::warp, multiply<tf32, tf32>},
        {"wgmma_e4m3_e4m3", Kind::warp, multiply<e4m3, e4m3>},
        {"wgmma_e4m3_e5m2", Kind::warp, multiply<e4m3, e5m2>},
        {"wgmma_e5m2_e4m3", Kind::warp, multiply<e5m2, e4m3>},
        {"wgmma_e5m2_e5m2", Kind::warp, multiply<e5m2, e5m2>},
        {"wgmma_s8_s8", Kind::warp, multiply_integers<s8, s8>},
        {"wgmma_s8_u8", Kind::warp, multiply_integers<s8, u8>},
        {"wgmma_u8_s8", Kind::warp, multiply_integers<u8, s8>},
        {"wgmma_u8_u8", Kind::warp, multiply_integers<u8, u8>},
        {"wgmma_b1_b1", Kind::warp, multiply_bits},
        {"wgmma_fence", Kind::warp, fence},
        {"wgmma_commit", Kind::warp, commit},
        {"wgmma_wait", Kind::warp, wait},
    };
    return table;
}

}  // namespace ptxemu
