// Elements of tensor-core operands as numbers: from registers, and how they lie there.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "eighth.hpp"
#include "fragment.hpp"
#include "machine.hpp"

namespace ptxemu {

struct tf32 {};

// Element `which` of a register, as a number.
template <class T>
struct Element {
    static constexpr int bits = sizeof(T) * 8;
    using Lane = u32;
    static T at(u32 packed, int which) {
        using Raw = std::conditional_t<sizeof(T) == 2, u16, u8>;
        return ptxemu::bits<T>(static_cast<Raw>(packed >> bits * which));
    }
    static f64 value(u32 packed, int which) {
        if constexpr (std::is_integral_v<T>)
            return at(packed, which);
        else
            return widen(at(packed, which));
    }
};
template <>
struct Element<tf32> {
    static constexpr int bits = 32;
    using Lane = u32;
    static f64 value(u32 packed, int) { return ptxemu::bits<f32>(packed & 0xffffe000u); }
};
template <>
struct Element<f64> {
    static constexpr int bits = 64;
    using Lane = f64;
    static f64 value(f64 lane, int) { return lane; }
};

// The registers of an instruction that has more than fit.
inline const u32* register_list(const Warp& warp, const Instruction& i) {
    return warp.worker->launch->function->extra.data() + i.operand[3];
}

// An operand as a matrix, row by row; returns its number of registers.
template <class T>
int gather(const Warp& warp, const u32* registers, Part part, Extent extent, f64* matrix) {
    const Fragment& where = fragment(part, extent, Element<T>::bits);
    for (int r = 0; r < where.registers; ++r) {
        const auto* lanes = warp.lanes<typename Element<T>::Lane>(registers[r]);
        for (int which = 0; which < where.per_register; ++which) {
            const u16* place = where.of(r, which);
            for (int lane = 0; lane < kLanes; ++lane) matrix[place[lane]] = Element<T>::value(lanes[lane], which);
        }
    }
    return where.registers;
}

}  // namespace ptxemu
