#include "half.hpp"

#include "lane.hpp"

namespace ptxemu {
namespace {

inline f32 saturate(f32 value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }
// A magnitude, negative where one of two numbers is.
inline f32 with_signs(f32 magnitude, f32 a, f32 b) {
    return std::copysign(magnitude, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f);
}
// Of a negative zero, too, a positive one, as an H200 has it; a NaN stays.
inline f32 relu(f32 value) { return value > 0 || value != value ? value : 0.0f; }

// A register of N halves: 32 in 16-bit registers, 64 in 32-bit ones.
template <class H, int N>
struct Halves {
    alignas(64) f32 value[N];

    Halves() = default;
    Halves(const Warp& warp, u32 offset) { widen_all(warp.lanes<H>(offset), value, N); }

    // Out of line: it is the same for every operation, and as long as all that is special to one.
    [[gnu::noinline]] void store(const Warp& warp, u32 offset, const pred* lanes) const {
        alignas(64) H rounded[N];
        narrow_all(value, rounded, N);
        H* destination = warp.lanes<H>(offset);
        for (int l = 0; l < N; ++l)
            if (lanes == nullptr || lanes[l * kLanes / N]) destination[l] = rounded[l];
    }
};

template <class H, int N, class Evaluate>
void each1(Warp& w, const Instruction& i, const pred* lanes, Evaluate evaluate) {
    const Halves<H, N> a(w, i.operand[1]);
    Halves<H, N> result;
    for (int l = 0; l < N; ++l) result.value[l] = evaluate(a.value[l]);
    result.store(w, i.operand[0], lanes);
}

template <class H, int N, class Evaluate>
void each2(Warp& w, const Instruction& i, const pred* lanes, Evaluate evaluate) {
    const Halves<H, N> a(w, i.operand[1]), b(w, i.operand[2]);
    Halves<H, N> result;
    for (int l = 0; l < N; ++l) result.value[l] = evaluate(a.value[l], b.value[l]);
    result.store(w, i.operand[0], lanes);
}

template <class H, int N, class Evaluate>
void each3(Warp& w, const Instruction& i, const pred* lanes, Evaluate evaluate) {
    const Halves<H, N> a(w, i.operand[1]), b(w, i.operand[2]), c(w, i.operand[3]);
    Halves<H, N> result;
    for (int l = 0; l < N; ++l) result.value[l] = evaluate(a.value[l], b.value[l], c.value[l]);
    result.store(w, i.operand[0], lanes);
}

template <class H, class Evaluate>
void compare(Warp& w, const Instruction& i, const pred* lanes, Evaluate evaluate) {
    const Halves<H, kLanes> a(w, i.operand[1]), b(w, i.operand[2]);
    assign(w.lanes<pred>(i.operand[0]), lanes, [&](int l) { return evaluate(a.value[l], b.value[l]) ? kTrue : 0u; });
}

template <class H, class Evaluate>
void compare_pairs(Warp& w, const Instruction& i, const pred* lanes, Evaluate evaluate) {
    const Halves<H, 2 * kLanes> a(w, i.operand[1]), b(w, i.operand[2]);
    assign(w.lanes<u32>(i.operand[0]), lanes, [&](int l) {
        const u32 low = evaluate(a.value[2 * l], b.value[2 * l]) ? 0xffffu : 0u;
        return low | (evaluate(a.value[2 * l + 1], b.value[2 * l + 1]) ? 0xffff0000u : 0u);
    });
}

}  // namespace

#define EMU_HALF(name, each, ...) \
    {#name, Kind::lane, [](Warp& w, const Instruction& i, u32, const pred* m) { each(w, i, m, __VA_ARGS__); }},
#define EMU_HALVES(stem, n, ...)                             \
    EMU_HALF(stem##_f16, (each##n<f16, 32>), __VA_ARGS__)    \
    EMU_HALF(stem##_bf16, (each##n<bf16, 32>), __VA_ARGS__)  \
    EMU_HALF(stem##_f16x2, (each##n<f16, 64>), __VA_ARGS__)  \
    EMU_HALF(stem##_bf16x2, (each##n<bf16, 64>), __VA_ARGS__)
#define HALF1(stem, ...) EMU_HALVES(stem, 1, [](f32 a) -> f32 { return __VA_ARGS__; })
#define HALF2(stem, ...) EMU_HALVES(stem, 2, [](f32 a, f32 b) -> f32 { return __VA_ARGS__; })
#define HALF3(stem, ...) EMU_HALVES(stem, 3, [](f32 a, f32 b, f32 c) -> f32 { return __VA_ARGS__; })
#define COMPARE_HALF(op, ...)                                                                   \
    EMU_HALF(setp_##op##_f16, compare<f16>, [](f32 a, f32 b) -> bool { return __VA_ARGS__; })    \
    EMU_HALF(setp_##op##_bf16, compare<bf16>, [](f32 a, f32 b) -> bool { return __VA_ARGS__; })  \
    EMU_HALF(setmask_##op##_f16x2, compare_pairs<f16>, [](f32 a, f32 b) -> bool { return __VA_ARGS__; }) \
    EMU_HALF(setmask_##op##_bf16x2, compare_pairs<bf16>, [](f32 a, f32 b) -> bool { return __VA_ARGS__; })

const std::vector<Operation>& half_operations() {
    static const std::vector<Operation> table = {
#include "half.def"
    };
    return table;
}

}  // namespace ptxemu
