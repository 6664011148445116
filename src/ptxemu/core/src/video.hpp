// Video instructions: integer arithmetic on bytes, halves and words of registers, with a second operation behind it.
#pragma once

#include <algorithm>

#include "types.hpp"

namespace ptxemu {

// What the immediate of an instruction says of it (see ptx/selection/video.py).
struct VideoForm {
    u64 bits;
    enum Verb : u64 { add, sub, absolute_difference, least, greatest, shift_left, shift_right, compare };
    enum Second : u64 { none, sum, minimum, maximum, merge };
    u64 field(int shift, u64 mask) const { return bits >> shift & mask; }
    u64 verb() const { return field(0, 7); }
    u64 comparison() const { return field(3, 7); }  // eq, ne, lt, le, gt, ge
    bool left_signed() const { return field(6, 1); }
    bool right_signed() const { return field(7, 1); }
    bool result_signed() const { return field(8, 1); }
    bool saturates() const { return field(9, 1); }
    bool wraps() const { return field(10, 1); }
    u64 second() const { return field(11, 7); }
    u32 elements() const { return static_cast<u32>(field(14, 7)); }
    u32 mask() const { return static_cast<u32>(field(17, 15)); }
    // Of a scalar operation's operands: first bit and bits.
    int left_shift() const { return static_cast<int>(field(24, 31)); }
    int left_bits() const { return static_cast<int>(field(32, 63)); }
    int right_shift() const { return static_cast<int>(field(40, 31)); }
    int right_bits() const { return static_cast<int>(field(48, 63)); }
    int result_shift() const { return static_cast<int>(field(56, 31)); }
};

inline s64 video_part(u32 value, int shift, int bits, bool is_signed) {
    const u64 part = u64{value} >> shift & ((u64{1} << bits) - 1);
    return is_signed ? static_cast<s64>(part << (64 - bits)) >> (64 - bits) : static_cast<s64>(part);
}

inline s64 video_operation(VideoForm form, s64 a, s64 b) {
    const s64 places = form.wraps() ? b & 31 : std::min<s64>(static_cast<u32>(b), 32);
    switch (form.verb()) {
        case VideoForm::add: return a + b;
        case VideoForm::sub: return a - b;
        case VideoForm::absolute_difference: return a < b ? b - a : a - b;
        case VideoForm::least: return std::min(a, b);
        case VideoForm::greatest: return std::max(a, b);
        case VideoForm::shift_left: return static_cast<s64>(static_cast<u64>(a) << places);
        case VideoForm::shift_right: return a >> places;
        default: break;
    }
    const bool results[] = {a == b, a != b, a < b, a <= b, a > b, a >= b};
    return results[form.comparison() % 6];
}

inline s64 video_saturated(VideoForm form, s64 value, int bits) {
    if (!form.saturates()) return value;
    const s64 span = s64{1} << (form.result_signed() ? bits - 1 : bits);
    return std::clamp<s64>(value, form.result_signed() ? -span : 0, span - 1);
}

// One operation, whose result a second one joins with `c`, or which replaces a part of it.
inline u32 video_scalar(VideoForm form, u32 a, u32 b, u32 c, int bits) {
    const s64 left = video_part(a, form.left_shift(), form.left_bits(), form.left_signed());
    const s64 right = video_part(b, form.right_shift(), form.right_bits(), form.right_signed());
    const u32 value = static_cast<u32>(video_saturated(form, video_operation(form, left, right), bits));
    const bool is_signed = form.result_signed();
    const s64 x = video_part(value, 0, 32, is_signed), y = video_part(c, 0, 32, is_signed);
    const u32 part = static_cast<u32>((u64{1} << bits) - 1) << form.result_shift();
    switch (form.second()) {
        case VideoForm::sum: return value + c;
        case VideoForm::minimum: return static_cast<u32>(std::min(x, y));
        case VideoForm::maximum: return static_cast<u32>(std::max(x, y));
        case VideoForm::merge: return (c & ~part) | (value << form.result_shift() & part);
        default: return value;
    }
}

// Halves or bytes side by side; those outside of the mask are `c`'s, or are not added to it.
inline u32 video_parallel(VideoForm form, u32 a, u32 b, u32 c) {
    const int bits = static_cast<int>(32 / form.elements());
    u32 result = c;
    for (u32 element = 0; element < form.elements(); ++element) {
        if (!(form.mask() >> element & 1)) continue;
        const int shift = static_cast<int>(element) * bits;
        const s64 left = video_part(a, shift, bits, form.left_signed());
        const s64 right = video_part(b, shift, bits, form.right_signed());
        const u32 value = static_cast<u32>(video_saturated(form, video_operation(form, left, right), bits));
        const u32 part = ((1u << bits) - 1) << shift;
        result = form.second() == VideoForm::sum ? result + value : (result & ~part) | (value << shift & part);
    }
    return result;
}

// (a * b + c) >> places of the signed or unsigned parts, the product or `c` negated.
struct VideoProduct {
    u64 bits;
    VideoForm parts() const { return {bits}; }
    bool saturates() const { return bits >> 9 & 1; }
    bool one_more() const { return bits >> 10 & 1; }
    bool product_negated() const { return bits >> 11 & 1; }
    bool addend_negated() const { return bits >> 12 & 1; }
    int places() const { return static_cast<int>(bits >> 14 & 15); }
};

inline u32 video_product(VideoProduct form, u32 a, u32 b, u32 c) {
    const VideoForm parts = form.parts();
    const bool is_signed =
        parts.left_signed() || parts.right_signed() || form.product_negated() || form.addend_negated();
    using Wide = __int128;
    const Wide product = Wide{video_part(a, parts.left_shift(), parts.left_bits(), parts.left_signed())} *
                         video_part(b, parts.right_shift(), parts.right_bits(), parts.right_signed());
    const Wide addend = video_part(c, 0, 32, is_signed);
    Wide value = (form.product_negated() ? -product : product) + (form.addend_negated() ? -addend : addend) +
                 (form.one_more() ? 1 : 0);
    value >>= form.places();
    if (form.saturates()) {
        const Wide low = is_signed ? Wide{INT32_MIN} : Wide{0}, high = is_signed ? Wide{INT32_MAX} : Wide{UINT32_MAX};
        value = std::clamp(value, low, high);
    }
    return static_cast<u32>(value);
}

}  // namespace ptxemu
