// fp8 numbers: e4m3 (no infinities, one NaN pattern per sign) and e5m2 (as fp16 with a shorter significand).
#pragma once

#include <algorithm>

#include "half.hpp"

namespace ptxemu {

struct e4m3 {
    u8 bits;
};
struct e5m2 {
    u8 bits;
};

inline f32 widen(e5m2 value) { return widen(f16{static_cast<u16>(value.bits << 8)}); }

inline f32 widen(e4m3 value) {
    const int magnitude = value.bits & 0x7f;
    const f32 sign = value.bits & 0x80 ? -1.0f : 1.0f;
    if (magnitude == 0x7f) return bits<f32>(0x7fffffffu);
    const int exponent = magnitude >> 3, fraction = magnitude & 7;
    return sign * (exponent == 0 ? std::ldexp(static_cast<f32>(fraction), -9)
                                 : std::ldexp(static_cast<f32>(8 + fraction), exponent - 10));
}

// Float to fp8, nearest even, beyond the largest finite number to that number. A float that came from a wider format
// must have been rounded to odd. `mantissa` and `bias` describe the format.
inline u8 narrow_eighth(f32 value, int mantissa, int bias, u32 largest, u32 nan) {
    if (value != value) return static_cast<u8>(nan);
    const u32 sign = bits<u32>(value) >> 24 & 0x80u;
    int exponent;
    const f64 fraction = std::frexp(std::fabs(static_cast<f64>(value)), &exponent);  // in [0.5, 1)
    if (std::isinf(value) || exponent > 20) return static_cast<u8>(sign | largest);
    if (fraction == 0) return static_cast<u8>(sign);
    const int biased = std::max(exponent - 1 + bias, 1);
    const u32 kept = static_cast<u32>(std::nearbyint(std::ldexp(fraction, exponent - (biased - bias) + mantissa)));
    // A kept value of 2^mantissa or more carries the implicit bit into the exponent field.
    const u32 code = (static_cast<u32>(biased - 1) << mantissa) + kept;
    return static_cast<u8>(sign | std::min(code, largest));
}

inline u8 narrow_e4m3(f32 value) { return narrow_eighth(value, 3, 7, 0x7e, 0x7f); }
inline u8 narrow_e5m2(f32 value) { return narrow_eighth(value, 2, 15, 0x7b, 0x7f); }

}  // namespace ptxemu
