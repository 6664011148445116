#include "lane.hpp"

namespace ptxemu {
namespace {

inline f32 flush(f32 value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }

// minNum and maxNum of IEEE 754: a NaN loses against a number, -0 is below +0.
template <class T>
inline T minimum(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}

template <class T>
inline T maximum(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}

template <class T>
inline bool either_nan(T a, T b) {
    return a != a || b != b;
}

// A magnitude, negative where one of two numbers is.
inline f32 with_signs(f32 magnitude, f32 a, f32 b) {
    return std::copysign(magnitude, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
}

// NaN becomes 0.
inline f32 saturate(f32 value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }

// The 64-bit approximations read and write the upper 32 bits only.
inline f64 coarse(f64 value) { return bits<f64>(bits<u64>(value) & 0xffffffff00000000ull); }

}  // namespace

#define SINGLE1(stem, ...)                   \
    OP1(stem##_f32, f32, f32, __VA_ARGS__)   \
    OP1(stem##_ftz_f32, f32, f32, flush([](f32 a) -> f32 { return __VA_ARGS__; }(flush(a))))
#define SINGLE2(stem, ...)                      \
    OP2(stem##_f32, f32, f32, f32, __VA_ARGS__) \
    OP2(stem##_ftz_f32, f32, f32, f32, flush([](f32 a, f32 b) -> f32 { return __VA_ARGS__; }(flush(a), flush(b))))
#define SINGLE3(stem, ...)                           \
    OP3(stem##_f32, f32, f32, f32, f32, __VA_ARGS__) \
    OP3(stem##_ftz_f32, f32, f32, f32, f32,          \
        flush([](f32 a, f32 b, f32 c) -> f32 { return __VA_ARGS__; }(flush(a), flush(b), flush(c))))
#define FLOAT1(stem, ...) SINGLE1(stem, __VA_ARGS__) OP1(stem##_f64, f64, f64, __VA_ARGS__)
#define FLOAT2(stem, ...) SINGLE2(stem, __VA_ARGS__) OP2(stem##_f64, f64, f64, f64, __VA_ARGS__)
#define FLOAT3(stem, ...) SINGLE3(stem, __VA_ARGS__) OP3(stem##_f64, f64, f64, f64, f64, __VA_ARGS__)
// COMPARE_FLOAT(op, expression): setp_op_f32, setp_op_ftz_f32, setp_op_f64
#define COMPARE_FLOAT(op, ...)                                       \
    OP2(setp_##op##_f32, pred, f32, f32, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_f64, pred, f64, f64, (__VA_ARGS__) ? kTrue : 0u) \
    OP2(setp_##op##_ftz_f32, pred, f32, f32,                         \
        ([](f32 a, f32 b) { return (__VA_ARGS__); }(flush(a), flush(b))) ? kTrue : 0u)

const std::vector<Operation>& float_operations() {
    static const std::vector<Operation> table = {
#include "float.def"
    };
    return table;
}

}  // namespace ptxemu
