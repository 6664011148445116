#include <algorithm>

#include "lane.hpp"
#include "video.hpp"

namespace ptxemu {
namespace {

// Division by zero does not trap on a GPU: the quotient is all ones, the remainder the dividend.
template <class T>
T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (static_cast<T>(-1) < 0 && b == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<u64>(a));
    return a / b;
}

template <class T>
T remainder_of(T a, T b) {
    if (b == 0) return a;
    if (static_cast<T>(-1) < 0 && b == static_cast<T>(-1)) return 0;
    return a % b;
}

u32 reverse(u32 value) {
    value = (value >> 1 & 0x55555555u) | (value & 0x55555555u) << 1;
    value = (value >> 2 & 0x33333333u) | (value & 0x33333333u) << 2;
    value = (value >> 4 & 0x0f0f0f0fu) | (value & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(value);
}

// Position of the n-th set bit counted from `base`, upwards for n > 0, downwards for n < 0; all ones when absent.
u32 find_nth_set(u32 mask, u32 base, s32 n) {
    if (n == INT32_MIN) return 0;  // whose magnitude ptxas takes for the negative number that it is
    if (base > 31) return kAllLanes;
    if (n == 0) return mask >> base & 1 ? base : kAllLanes;
    const int step = n > 0 ? 1 : -1;
    for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step)
        if ((mask >> position & 1) && (n -= step) == 0) return static_cast<u32>(position);
    return kAllLanes;
}

// PTX takes the low eight bits of positions and lengths; what ptxas makes of 64-bit fields takes all of them.
u32 field_operand(u32 value, u32 width) { return width == 64 ? value : value & 255; }

u64 extract_unsigned(u64 value, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    if (position >= width || length == 0) return 0;
    value >>= position;
    return length >= 64 ? value : value & ((1ull << length) - 1);
}

s64 extract_signed(s64 value, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    if (length == 0) return 0;
    if (position >= width) position = width - 1;
    value >>= position;
    return length >= 64 ? value : static_cast<s64>(static_cast<u64>(value) << (64 - length)) >> (64 - length);
}

u64 insert_field(u64 field, u64 base, u32 position, u32 length, u32 width) {
    position = field_operand(position, width);
    length = field_operand(length, width);
    if (position >= width || length == 0) return base;
    const u64 ones = length >= 64 ? ~0ull : (1ull << length) - 1;
    return (base & ~(ones << position)) | (field & ones) << position;
}

u32 ternary_logic(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (u32 row = 0; row < 8; ++row)
        if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return result;
}

u32 permute(u32 a, u32 b, u32 selector) {
    const u64 bytes = static_cast<u64>(b) << 32 | a;
    u32 result = 0;
    for (int position = 0; position < 4; ++position) {
        const u32 choice = selector >> 4 * position;
        u32 byte = static_cast<u32>(bytes >> 8 * (choice & 7)) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * position;
    }
    return result;
}

// prmt.b4e: four bytes downwards from c.
u32 backward_selector(u32 c) {
    u32 selector = 0;
    for (u32 position = 0; position < 4; ++position) selector |= (((c & 3) - position) & 7) << 4 * position;
    return selector;
}

// prmt.ecl and .ecr: bytes left or right of byte c repeat it.
u32 edge_selector(u32 c, bool left) {
    u32 selector = 0;
    for (u32 position = 0; position < 4; ++position)
        selector |= (left ? std::max(position, c & 3) : std::min(position, c & 3)) << 4 * position;
    return selector;
}

s64 clamped(s64 value) { return std::clamp<s64>(value, -0x80000000ll, 0x7fffffffll); }

template <class H, class Evaluate>
u32 in_halves(u32 a, u32 b, Evaluate evaluate) {
    const u16 low = static_cast<u16>(evaluate(static_cast<H>(a), static_cast<H>(b)));
    const u16 high = static_cast<u16>(evaluate(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
    return u32{high} << 16 | low;
}

template <class A, class B>
u32 dot4(u32 a, u32 b, u32 c) {
    for (int byte = 0; byte < 32; byte += 8)
        c += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> byte)) * static_cast<s32>(static_cast<B>(b >> byte)));
    return c;
}

template <class A, class B>
u32 dot2(u32 a, u32 b, u32 c, int first_bit) {
    for (int half = 0; half < 2; ++half)
        c += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> 16 * half)) *
                              static_cast<s32>(static_cast<B>(b >> (first_bit + 8 * half))));
    return c;
}

}  // namespace

// COMPARE_INTEGER(op, expression): setp_op_{s,u}{16,32,64}
#define COMPARE_INTEGER(op, ...)                            \
    OP2(setp_##op##_s16, pred, s16, s16, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_u16, pred, u16, u16, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_s32, pred, s32, s32, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_u32, pred, u32, u32, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_s64, pred, s64, s64, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_u64, pred, u64, u64, (__VA_ARGS__) ? kTrue : 0u)

const std::vector<Operation>& integer_operations() {
    static const std::vector<Operation> table = {
#include "integer.def"
    };
    return table;
}

}  // namespace ptxemu
