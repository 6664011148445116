// 64 bytes of lanes at once, in whatever registers the host has.
#pragma once

#include "types.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace ptxemu {

using Words = u32 __attribute__((vector_size(64)));
using Longs = u64 __attribute__((vector_size(64)));
using Doubles = f64 __attribute__((vector_size(64)));
constexpr Words kWordCount = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr Longs kLongCount = {0, 1, 2, 3, 4, 5, 6, 7};

template <class Vector>
inline Vector load_vector(const void* from) {
    Vector result;
    std::memcpy(&result, from, sizeof result);
    return result;
}

template <class Vector>
inline bool is_zero(const Vector& value) {
#if defined(__AVX512F__)
    const __m512i whole = reinterpret_cast<__m512i>(value);
    return _mm512_test_epi64_mask(whole, whole) == 0;
#else
    u64 part[8], all = 0;
    std::memcpy(part, &value, sizeof part);
    for (const u64 one : part) all |= one;
    return all == 0;
#endif
}

}  // namespace ptxemu
