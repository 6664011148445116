// fp16 and bf16 lanes: storage is 16 bits, arithmetic happens in float or double and is rounded once.
//
// Float has 24 bits and half 11: rounding a float sum, difference, product, quotient or root to half equals rounding
// the exact result (24 >= 2*11 + 2), likewise for bf16. A fused multiply-add needs more: see fused().
#pragma once

#include "types.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace ptxemu {

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

inline f32 widen(f16 value) {
#if defined(__F16C__)
    return _cvtsh_ss(value.bits);
#else
    const u32 sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return bits<f32>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    const f32 scaled = bits<f32>(magnitude << 13) * 0x1p112f;
    return bits<f32>(sign | bits<u32>(scaled));
#endif
}

inline f32 widen(bf16 value) { return bits<f32>(static_cast<u32>(value.bits) << 16); }

enum class Rounding { nearest, zero, down, up };

// Float to half by hand: for directed modes everywhere, and for nearest where the processor has no F16C.
inline f16 narrow_f16_slowly(f32 value, Rounding rounding) {
    const u32 raw = bits<u32>(value), magnitude = raw & 0x7fffffffu;
    const u16 sign = static_cast<u16>(raw >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return {0x7fff};
    if (magnitude == 0x7f800000u) return {static_cast<u16>(sign | 0x7c00u)};
    const bool away = (rounding == Rounding::up && !sign) || (rounding == Rounding::down && sign);
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    if (exponent > 15) {
        const bool to_infinity = rounding == Rounding::nearest || away;
        return {static_cast<u16>(sign | (to_infinity ? 0x7c00u : 0x7bffu))};
    }
    const u64 significand = (magnitude >> 23 ? 0x800000u : 0u) | (magnitude & 0x7fffffu);
    int shift = exponent >= -14 ? 13 : 13 + (-14 - exponent);
    if (shift > 40) shift = 40;
    u32 kept = static_cast<u32>(significand >> shift);
    const u64 rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    if (rounding == Rounding::nearest ? rest > half || (rest == half && (kept & 1)) : away && rest) ++kept;
    // The implicit bit of a normal number carries into the exponent field by addition.
    const u32 base = exponent >= -14 ? static_cast<u32>(exponent + 14) << 10 : 0u;
    return {static_cast<u16>(sign | (base + kept))};
}

inline f16 narrow_f16(f32 value) {
#if defined(__F16C__)
    // PTX's canonical NaN is 0x7fff; the processor would keep the payload.
    return value != value ? f16{0x7fff} : f16{static_cast<u16>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
#else
    return narrow_f16_slowly(value, Rounding::nearest);
#endif
}

inline bf16 narrow_bf16(f32 value, Rounding rounding = Rounding::nearest) {
    const u32 raw = bits<u32>(value);
    if (value != value) return {0x7fff};
    if (rounding == Rounding::nearest) return {static_cast<u16>((raw + 0x7fffu + (raw >> 16 & 1u)) >> 16)};
    const bool negative = raw >> 31;
    const bool away = (rounding == Rounding::up && !negative) || (rounding == Rounding::down && negative);
    return {static_cast<u16>((raw >> 16) + (away && (raw & 0xffffu) != 0))};
}

inline void narrow(f32 value, f16& result) { result = narrow_f16(value); }
inline void narrow(f32 value, bf16& result) { result = narrow_bf16(value); }

// Rounds a double to float so that a later rounding to fewer bits sees the exact value: inexact results become odd.
inline f32 to_odd(f64 value, bool inexact = false) {
    const f32 nearest = static_cast<f32>(value);
    if (nearest != nearest || std::isinf(value)) return nearest;
    u32 raw = bits<u32>(nearest);
    inexact = inexact || static_cast<f64>(nearest) != value;
    if (std::fabs(static_cast<f64>(nearest)) > std::fabs(value)) --raw;
    return bits<f32>(inexact ? raw | 1u : raw);
}

// a * b + c as if exact: the product of two 11-bit numbers is exact in double; what the sum loses is kept sticky.
inline f32 fused(f32 a, f32 b, f32 c) {
    const f64 product = static_cast<f64>(a) * b, addend = c, sum = product + addend;
    if (!std::isfinite(sum)) return static_cast<f32>(sum);
    const f64 back = sum - product;
    const f64 lost = (product - (sum - back)) + (addend - back);
    if (lost == 0) return to_odd(sum);
    // The exact value lies strictly between two doubles: any odd float between them rounds alike.
    const bool overshoots = (lost < 0) == (sum > 0);
    return to_odd(overshoots ? std::nextafter(sum, 0.0) : sum, true);
}

// n lanes at once (a multiple of 16): conversions dominate half-precision kernels.
inline void widen_all(const f16* source, f32* result, int n) {
#if defined(__AVX512F__)
    for (int l = 0; l < n; l += 16)
        _mm512_storeu_ps(result + l, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + l))));
#else
    for (int l = 0; l < n; ++l) result[l] = widen(source[l]);
#endif
}

inline void widen_all(const bf16* source, f32* result, int n) {
    for (int l = 0; l < n; ++l) result[l] = widen(source[l]);
}

inline void narrow_all(const f32* source, f16* result, int n) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    for (int l = 0; l < n; l += 16) {
        const __m512 value = _mm512_loadu_ps(source + l);
        const __m256i rounded = _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(result + l),
                            _mm256_mask_blend_epi16(nan, rounded, _mm256_set1_epi16(0x7fff)));
    }
#else
    for (int l = 0; l < n; ++l) result[l] = narrow_f16(source[l]);
#endif
}

inline void narrow_all(const f32* source, bf16* result, int n) {
    for (int l = 0; l < n; ++l) result[l] = narrow_bf16(source[l]);
}

}  // namespace ptxemu
