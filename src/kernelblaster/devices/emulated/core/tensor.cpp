// Tensor-core operations on 16-bit matrices with float accumulators, and the matrix loads that feed them.
//
// Fragments lie in registers as PTX documents them: with group = lane / 4 and pair = lane % 4, a 16x16 operand A holds
// rows group and group + 8, columns 2 * pair (+1) and 2 * pair + 8 (+1); B (16x8) is the transpose of that pattern;
// C and D (16x8) hold rows group and group + 8, columns 2 * pair and 2 * pair + 1. The products of one instruction are
// summed in double and rounded once, which is more exact than hardware.
//
// Registers are listed in Function::extra, starting at Instruction::extra.
#include "access.hpp"
#include "half.hpp"
#include "machine.hpp"
#include "operations.hpp"

namespace kbemu {
namespace {

const u32* register_list(const Warp& warp, const Instruction& i) {
    return warp.worker->launch->function->extra.data() + i.operand[3];
}

template <class H>
f32 half_of(u32 packed, int which) {
    return widen(H{static_cast<u16>(packed >> 16 * which)});
}

template <class H>
void load_a(const Warp& warp, const u32* registers, int count, f32 (&a)[16][16]) {
    for (int r = 0; r < count; ++r) {
        const u32* lanes = warp.lanes<u32>(registers[r]);
        for (int lane = 0; lane < kLanes; ++lane)
            for (int which = 0; which < 2; ++which)
                a[lane / 4 + 8 * (r & 1)][lane % 4 * 2 + 8 * (r >> 1) + which] = half_of<H>(lanes[lane], which);
    }
}

template <class H>
void load_b(const Warp& warp, const u32* registers, int count, f32 (&b)[16][8]) {
    for (int r = 0; r < count; ++r) {
        const u32* lanes = warp.lanes<u32>(registers[r]);
        for (int lane = 0; lane < kLanes; ++lane)
            for (int which = 0; which < 2; ++which)
                b[lane % 4 * 2 + 8 * r + which][lane / 4] = half_of<H>(lanes[lane], which);
    }
}

// D = A * B + C with A 16 x K, B K x 8: registers d0-d3, a0.., b0.., c0-c3.
template <class H, int K>
void multiply(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    f32 a[16][16], b[16][8];
    load_a<H>(warp, registers + 4, K / 4, a);
    load_b<H>(warp, registers + 4 + K / 4, K / 8, b);
    const u32* c = registers + 4 + K / 4 + K / 8;
    f32 result[4][kLanes];
    for (int r = 0; r < 4; ++r) {
        const f32* addend = warp.lanes<f32>(c[r]);
        for (int lane = 0; lane < kLanes; ++lane) {
            const int row = lane / 4 + 8 * (r >> 1), column = lane % 4 * 2 + (r & 1);
            f64 sum = addend[lane];
            for (int k = 0; k < K; ++k) sum += static_cast<f64>(a[row][k]) * b[k][column];
            result[r][lane] = static_cast<f32>(sum);
        }
    }
    for (int r = 0; r < 4; ++r) std::memcpy(warp.lanes<f32>(registers[r]), result[r], sizeof result[r]);
}

// Lane 8 * k + r points at row r of matrix k: eight halves. Lane l receives elements 2 * (l % 4) and the next of row
// l / 4, or of that column when transposed.
template <int Matrices, bool Transposed>
void load_matrix(Warp& warp, const Instruction& i, u32, const pred*) {
    const u32* registers = register_list(warp, i);
    alignas(64) u64 address[kLanes];
    read_addresses(warp, i.operand[5], (i.flags & kWideAddress) != 0, i.immediate, address);
    for (u64& one : address) one = static_cast<u32>(one);
    const u32 pointing = Matrices == 4 ? kAllLanes : (1u << 8 * Matrices) - 1;
    const Access access = open_addresses(warp, i, Space::shared, address, pointing, 16, Op::load, i.memory);
    if (access.pattern == Pattern::fault) return;
    for (int matrix = 0; matrix < Matrices; ++matrix) {
        u16 element[8][8];
        for (int row = 0; row < 8; ++row) std::memcpy(element[row], access.pointer[8 * matrix + row], 16);
        u32* destination = warp.lanes<u32>(registers[matrix]);
        for (int lane = 0; lane < kLanes; ++lane) {
            const int row = lane / 4, column = lane % 4 * 2;
            const u16 low = Transposed ? element[column][row] : element[row][column];
            const u16 high = Transposed ? element[column + 1][row] : element[row][column + 1];
            destination[lane] = static_cast<u32>(high) << 16 | low;
        }
    }
}

}  // namespace

const std::vector<Operation>& tensor_operations() {
    static const std::vector<Operation> table = {
        {"mma_m16n8k16_f16", Kind::warp, multiply<f16, 16>},
        {"mma_m16n8k16_bf16", Kind::warp, multiply<bf16, 16>},
        {"mma_m16n8k8_f16", Kind::warp, multiply<f16, 8>},
        {"mma_m16n8k8_bf16", Kind::warp, multiply<bf16, 8>},
        {"ldmatrix_x1", Kind::warp, load_matrix<1, false>},
        {"ldmatrix_x2", Kind::warp, load_matrix<2, false>},
        {"ldmatrix_x4", Kind::warp, load_matrix<4, false>},
        {"ldmatrix_trans_x1", Kind::warp, load_matrix<1, true>},
        {"ldmatrix_trans_x2", Kind::warp, load_matrix<2, true>},
        {"ldmatrix_trans_x4", Kind::warp, load_matrix<4, true>},
    };
    return table;
}

}  // namespace kbemu
