#include <algorithm>
#include <limits>

#include "eighth.hpp"
#include "lane.hpp"

namespace ptxemu {
namespace {

// Of a negative zero a positive one, as fma.relu has it on an H200; a NaN stays.
inline f32 relu(f32 value) { return value > 0 || value != value ? value : 0.0f; }
inline f32 half_of(u32 pair, int which) { return widen(f16{static_cast<u16>(pair >> 16 * which)}); }
inline u32 pair_of(f32 low, f32 high) { return u32{narrow_f16(high).bits} << 16 | narrow_f16(low).bits; }
inline f32 saturate(f32 value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }

template <class T>
inline s64 clamp_to(s64 value) {
    const s64 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return value < low ? low : value > high ? high : value;
}

// An integral float to an integer type: out of range clamps. NaN becomes 0, or the lowest signed value of the type's
// width when source or result has 64 bits.
template <class T, class D, class F>
inline D to_integer(F value) {
    if (value != value)
        return sizeof(T) == 8 || sizeof(F) == 8 ? static_cast<D>(static_cast<T>(1ull << (sizeof(T) * 8 - 1))) : D{0};
    const F low = static_cast<F>(std::numeric_limits<T>::min());
    const F beyond = std::ldexp(F{1}, std::numeric_limits<T>::digits);
    if (value < low) return static_cast<D>(std::numeric_limits<T>::min());
    if (value >= beyond) return static_cast<D>(std::numeric_limits<T>::max());
    return static_cast<D>(static_cast<T>(value));
}

// 64-bit integers do not fit a double: what is cut off is kept sticky.
template <class T>
inline f32 integer_to_odd(T value) {
    const f64 high = static_cast<f64>(value / 4096) * 4096.0;
    const f64 low = static_cast<f64>(value % 4096);
    const f64 sum = high + low, gained = sum - high;
    const bool overshoots = std::fabs(gained) > std::fabs(low);
    return to_odd(overshoots ? std::nextafter(sum, 0.0) : sum, gained != low);
}

inline f32 directed(f64 value, Rounding rounding) {
    const f32 nearest = static_cast<f32>(value);
    if (nearest != nearest || static_cast<f64>(nearest) == value) return nearest;
    const bool too_high = static_cast<f64>(nearest) > value;
    const bool want_low = rounding == Rounding::down || (rounding == Rounding::zero && value > 0);
    if (too_high == want_low) return std::nextafter(nearest, want_low ? -INFINITY : INFINITY);
    return nearest;
}

// Nearest, ties away from zero, at 10 mantissa bits.
inline u32 round_tf32(f32 value) {
    return value != value ? 0x7fffffffu : (bits<u32>(value) + 0x1000u) & 0xffffe000u;
}

// To the nearest, ties to even; towards zero.
inline u32 even_tf32(f32 value) {
    return value != value ? 0x7fffffffu : (bits<u32>(value) + 0xfffu + (bits<u32>(value) >> 13 & 1u)) & 0xffffe000u;
}
inline u32 short_tf32(f32 value) { return value != value ? 0x7fffffffu : bits<u32>(value) & 0xffffe000u; }

// The largest finite number in the place of infinity.
inline u32 finite_tf32(u32 pattern) { return (pattern & 0x7fffffffu) == 0x7f800000u ? (pattern & 0x80000000u) | 0x7f7fe000u : pattern; }

void half_to_float(Warp& w, const Instruction& i, u32, const pred* lanes) {
    alignas(64) f32 value[kLanes];
    widen_all(w.lanes<f16>(i.operand[1]), value, kLanes);
    assign(w.lanes<f32>(i.operand[0]), lanes, [&](int l) { return value[l]; });
}

void float_to_half(Warp& w, const Instruction& i, u32, const pred* lanes) {
    alignas(64) f16 rounded[kLanes];
    narrow_all(w.lanes<f32>(i.operand[1]), rounded, kLanes);
    u16* destination = w.lanes<u16>(i.operand[0]);
    assign(destination, lanes, [&](int l) { return rounded[l].bits; });
}

}  // namespace

#define ROUND_TO_INTEGRAL(mode, function)                                        \
    OP1(cvt_##mode##_f32_f32, f32, f32, function(a))                             \
    OP1(cvt_##mode##_f64_f64, f64, f64, function(a))                             \
    OP1(cvt_##mode##_f16_f16, f16, f16, narrow_f16(function(widen(a))))          \
    OP1(cvt_##mode##_bf16_bf16, bf16, bf16, narrow_bf16(function(widen(a))))
#define EMU_TO_INTEGER(mode, function, T, D)                                              \
    OP1(cvt_##mode##_##T##_f32, D, f32, (to_integer<T, D, f32>(function(a))))            \
    OP1(cvt_##mode##_##T##_f64, D, f64, (to_integer<T, D, f64>(function(a))))            \
    OP1(cvt_##mode##_##T##_f16, D, f16, (to_integer<T, D, f32>(function(widen(a)))))     \
    OP1(cvt_##mode##_##T##_bf16, D, bf16, (to_integer<T, D, f32>(function(widen(a)))))
#define EMU_FROM_INTEGER(T, odd, mode, rounding)                                     \
    OP1(cvt_##mode##_f16_##T, f16, T, narrow_f16_slowly(odd(a), Rounding::rounding)) \
    OP1(cvt_##mode##_bf16_##T, bf16, T, narrow_bf16(odd(a), Rounding::rounding))
#define FROM_INTEGER(T, odd)               \
    EMU_FROM_INTEGER(T, odd, rn, nearest)   \
    EMU_FROM_INTEGER(T, odd, rz, zero)      \
    EMU_FROM_INTEGER(T, odd, rm, down)      \
    EMU_FROM_INTEGER(T, odd, rp, up)
#define TO_INTEGER(T, D)                    \
    EMU_TO_INTEGER(rni, std::nearbyint, T, D) \
    EMU_TO_INTEGER(rzi, std::trunc, T, D)     \
    EMU_TO_INTEGER(rmi, std::floor, T, D)     \
    EMU_TO_INTEGER(rpi, std::ceil, T, D)

const std::vector<Operation>& convert_operations() {
    static const std::vector<Operation> table = {
        {"cvt_f32_f16", Kind::lane, half_to_float},
        {"cvt_rn_f16_f32", Kind::lane, float_to_half},
#include "convert.def"
    };
    return table;
}

}  // namespace ptxemu
