#include "product.hpp"

#include <algorithm>

#include "eighth.hpp"
#include "vectors.hpp"

namespace ptxemu {
namespace {

constexpr int kSide = 8;

// Eight sums of a row.
using Row = Doubles;
using Halves = u16 __attribute__((vector_size(64)));

Row load(const f64* from) { return load_vector<Row>(from); }

inline Row spread(f64 a) { return Row{a, a, a, a, a, a, a, a}; }

// a * b + c, rounded once.
inline Row fused(Row a, Row b, Row c) {
#if defined(__AVX512F__)
    return reinterpret_cast<Row>(
        _mm512_fmadd_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), reinterpret_cast<__m512d>(c)));
#else
    for (int k = 0; k < kSide; ++k) c[k] = std::fma(a[k], b[k], c[k]);
    return c;
#endif
}

// Rows of sums at a time: as many as fit into the registers of the host.
#if defined(__AVX512F__)
constexpr int kTall = 8;
#else
constexpr int kTall = 4;
#endif

// kTall rows of one tile.
void multiply_tile(const f64* a, const f64* b, f64* sums, int depth) {
    Row sum[kTall];
    for (int r = 0; r < kTall; ++r) sum[r] = load(sums + r * kSide);
    for (int k = 0; k < depth; ++k) {
        const Row right = load(b + k * kSide);
        for (int r = 0; r < kTall; ++r) sum[r] = fused(spread(a[r * depth + k]), right, sum[r]);
    }
    std::memcpy(sums, sum, sizeof sum);
}

struct tf32 {
    u32 bits;
};

f32 widen(tf32 value) { return bits<f32>(value.bits & 0xffffe000u); }
f32 widen(s8 value) { return value; }
f32 widen(u8 value) { return value; }

// Every number of eight bits.
template <class T>
struct Eighths {
    f32 value[256];
    Eighths() {
        for (int k = 0; k < 256; ++k) value[k] = ptxemu::widen(T{static_cast<u8>(k)});
    }
};

template <class T>
void widen_tile(const T* raw, f32* wide, int count) {
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
        widen_all(raw, wide, count);
    } else if constexpr (std::is_same_v<T, e4m3> || std::is_same_v<T, e5m2>) {
        static const Eighths<T> known;
        for (int k = 0; k < count; ++k) wide[k] = known.value[raw[k].bits];
    } else {
        for (int k = 0; k < count; ++k) wide[k] = widen(raw[k]);
    }
}

template <class T>
void rows(const void* raw, f64* a, int depth) {
    constexpr int kPer = 16 / sizeof(T);
    alignas(64) f32 wide[kSide * kPer];
    widen_tile(static_cast<const T*>(raw), wide, kSide * kPer);
    for (int r = 0; r < kSide; ++r)
        for (int k = 0; k < kPer; ++k) a[r * depth + k] = wide[r * kPer + k];
}

template <class T>
void columns(const void* raw, f64* b) {
    constexpr int kPer = 16 / sizeof(T);
    alignas(64) f32 wide[kSide * kPer];
    if constexpr (sizeof(T) == 2) {
        T across[kSide * kPer];
        transpose_halves(raw, across);
        widen_tile(across, wide, kSide * kPer);
        for (int k = 0; k < kSide * kPer; ++k) b[k] = wide[k];
    } else {
        widen_tile(static_cast<const T*>(raw), wide, kSide * kPer);
        for (int k = 0; k < kPer; ++k)
            for (int c = 0; c < kSide; ++c) b[k * kSide + c] = wide[c * kPer + k];
    }
}

void rows_of_doubles(const void* raw, f64* a, int depth) {
    for (int r = 0; r < kSide; ++r) std::copy_n(static_cast<const f64*>(raw) + 4 * r, 4, a + r * depth);
}

void columns_of_doubles(const void* raw, f64* b) {
    for (int k = 0; k < 4; ++k)
        for (int c = 0; c < kSide; ++c) b[k * kSide + c] = static_cast<const f64*>(raw)[4 * c + k];
}

// Doubles to floats as to_odd() does, but for what a NaN holds.
void to_odd_all(const f64* source, f32* result, int n) {
    for (int k = 0; k < n; ++k) {
        const f64 value = source[k];
        const f32 nearest = static_cast<f32>(value);
        const f64 back = nearest;
        u32 raw = bits<u32>(nearest);
        raw -= std::fabs(back) > std::fabs(value) ? 1u : 0u;
        raw |= back != value ? 1u : 0u;
        result[k] = bits<f32>(raw);
    }
}

template <class To>
To rounded(f64 sum) {
    if constexpr (std::is_same_v<To, s32>)
        return static_cast<s32>(static_cast<u32>(static_cast<s64>(sum)));
    else
        return static_cast<To>(sum);
}

template <class T>
void join(const void* first, const void* second, f64* tile) {
    const T *even = static_cast<const T*>(first), *odd = static_cast<const T*>(second);
    for (int l = 0; l < kLanes; ++l) {
        tile[2 * l] = even[l];
        tile[2 * l + 1] = odd[l];
    }
}

template <class T>
void part(const f64* tile, void* first, void* second) {
    T *even = static_cast<T*>(first), *odd = static_cast<T*>(second);
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) {
        even[l] = rounded<T>(tile[2 * l]);
        odd[l] = rounded<T>(tile[2 * l + 1]);
    }
}

}  // namespace

namespace numbers {
const Number f16{16, rows<ptxemu::f16>, columns<ptxemu::f16>};
const Number bf16{16, rows<ptxemu::bf16>, columns<ptxemu::bf16>};
const Number tf32{32, rows<ptxemu::tf32>, columns<ptxemu::tf32>};
const Number e4m3{8, rows<ptxemu::e4m3>, columns<ptxemu::e4m3>};
const Number e5m2{8, rows<ptxemu::e5m2>, columns<ptxemu::e5m2>};
const Number s8{8, rows<ptxemu::s8>, columns<ptxemu::s8>};
const Number u8{8, rows<ptxemu::u8>, columns<ptxemu::u8>};
const Number f64{64, rows_of_doubles, columns_of_doubles};
}  // namespace numbers

void transpose_halves(const void* from, void* to) {
    Halves upper, lower, first, second;
    std::memcpy(&upper, from, sizeof upper);
    std::memcpy(&lower, static_cast<const u8*>(from) + sizeof upper, sizeof lower);
    // Row r of the result has element r of every row, of which each half holds four.
    constexpr Halves kFirst = {0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57,
                               2, 10, 18, 26, 34, 42, 50, 58, 3, 11, 19, 27, 35, 43, 51, 59};
    first = __builtin_shuffle(upper, lower, kFirst);
    second = __builtin_shuffle(upper, lower, kFirst + 4);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(static_cast<u8*>(to) + sizeof first, &second, sizeof second);
}

void multiply_panels(const f64* a, const f64* b, f64* sums, int panels_a, int depth, int panels_b) {
    for (int p = 0; p < panels_a; ++p)
        for (int q = 0; q < panels_b; ++q)
            for (int r = 0; r < kSide; r += kTall)
                multiply_tile(a + (p * kSide + r) * depth, b + q * depth * kSide, sums + (p * panels_b + q) * kTile + r * kSide,
                              depth);
}

void read_sums(Sum kind, const void* first, const void* second, f64* tile) {
    switch (kind) {
        case Sum::f32: return join<f32>(first, second, tile);
        case Sum::f64: return join<f64>(first, second, tile);
        case Sum::s32:
        case Sum::s32_saturated: return join<s32>(first, second, tile);
        case Sum::f16: return rows<f16>(first, tile, kSide);
    }
}

void write_sums(Sum kind, const f64* tile, void* first, void* second) {
    switch (kind) {
        case Sum::f32: return part<f32>(tile, first, second);
        case Sum::f64: return part<f64>(tile, first, second);
        case Sum::s32: return part<s32>(tile, first, second);
        case Sum::s32_saturated: {
            f64 held[kTile];
            for (int k = 0; k < kTile; ++k) held[k] = std::clamp(tile[k], -0x1p31, 0x1p31 - 1);
            return part<s32>(held, first, second);
        }
        case Sum::f16: {
            alignas(64) f32 odd[kTile];
            to_odd_all(tile, odd, kTile);
            return narrow_all(odd, static_cast<f16*>(first), kTile);
        }
    }
}

}  // namespace ptxemu
