// Names of PTX types as C++ types, and the lane loop every operation is built from.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptxemu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u128 = unsigned __int128;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using s128 = __int128;
using f32 = float;
using f64 = double;
// A predicate is a 32-bit lane: 0 or ~0, so that vector compares store it and selects read it unchanged.
using pred = u32;

constexpr int kLanes = 32;
constexpr u32 kAllLanes = ~0u;
constexpr pred kTrue = ~0u;

template <class To, class From>
inline To bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

inline u32 popcount(u32 mask) { return static_cast<u32>(__builtin_popcount(mask)); }
inline int first_lane(u32 mask) { return __builtin_ctz(mask); }

// Visits the set lanes of a mask in ascending order.
template <class Visit>
inline void for_each_lane(u32 mask, Visit visit) {
    for (; mask != 0; mask &= mask - 1) visit(first_lane(mask));
}

// Bit l of the result is lane l of a predicate register.
inline u32 mask_of(const pred* lanes) {
    u32 mask = 0;
    for (int l = 0; l < kLanes; ++l) mask |= lanes[l] & (1u << l);
    return mask;
}

// The inverse: lane l is ~0 where bit l is set.
inline void expand(u32 mask, pred* lanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = 0u - ((mask >> l) & 1u);
}

}  // namespace ptxemu
