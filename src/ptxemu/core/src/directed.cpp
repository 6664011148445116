// Compiled with -frounding-math: the host's own rounding mode does the work.
#include <cfenv>

#include "lane.hpp"

namespace kbemu {
namespace {

class RoundingMode {
public:
    explicit RoundingMode(int mode) { std::fesetround(mode); }
    ~RoundingMode() { std::fesetround(FE_TONEAREST); }
};

}  // namespace

#define KB_DIRECTED1(name, mode, T, ...)                                    \
    {#name, Kind::lane, KB_HANDLER(T, KB_SOURCE(T, a, 1);                   \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l];                                        \
             return __VA_ARGS__;                                            \
         });)},
#define KB_DIRECTED2(name, mode, T, ...)                                    \
    {#name, Kind::lane, KB_HANDLER(T, KB_SOURCE(T, a, 1); KB_SOURCE(T, b, 2); \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l], b = b_lanes[l];                        \
             return __VA_ARGS__;                                            \
         });)},
#define KB_DIRECTED3(name, mode, T, ...)                                    \
    {#name, Kind::lane, KB_HANDLER(T, KB_SOURCE(T, a, 1); KB_SOURCE(T, b, 2); KB_SOURCE(T, c, 3); \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l], b = b_lanes[l], c = c_lanes[l];        \
             return __VA_ARGS__;                                            \
         });)},
#define KB_ALL_MODES(stem, n, ...)                                  \
    KB_DIRECTED##n(stem##_rz_f32, FE_TOWARDZERO, f32, __VA_ARGS__)  \
    KB_DIRECTED##n(stem##_rm_f32, FE_DOWNWARD, f32, __VA_ARGS__)    \
    KB_DIRECTED##n(stem##_rp_f32, FE_UPWARD, f32, __VA_ARGS__)      \
    KB_DIRECTED##n(stem##_rz_f64, FE_TOWARDZERO, f64, __VA_ARGS__)  \
    KB_DIRECTED##n(stem##_rm_f64, FE_DOWNWARD, f64, __VA_ARGS__)    \
    KB_DIRECTED##n(stem##_rp_f64, FE_UPWARD, f64, __VA_ARGS__)
#define KB_FROM_INTEGER(name, mode, F, T)                                   \
    {#name, Kind::lane, KB_HANDLER(F, KB_SOURCE(T, a, 1);                   \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<F>(i.operand[0]), m, [=](int l) -> F { return static_cast<F>(a_lanes[l]); });)},
#define DIRECTED_INTEGER(F, T)                                  \
    KB_FROM_INTEGER(cvt_rz_##F##_##T, FE_TOWARDZERO, F, T)      \
    KB_FROM_INTEGER(cvt_rm_##F##_##T, FE_DOWNWARD, F, T)        \
    KB_FROM_INTEGER(cvt_rp_##F##_##T, FE_UPWARD, F, T)
#define DIRECTED1(stem, ...) KB_ALL_MODES(stem, 1, __VA_ARGS__)
#define DIRECTED2(stem, ...) KB_ALL_MODES(stem, 2, __VA_ARGS__)
#define DIRECTED3(stem, ...) KB_ALL_MODES(stem, 3, __VA_ARGS__)

const std::vector<Operation>& directed_operations() {
    static const std::vector<Operation> table = {
#include "directed.def"
    };
    return table;
}

}  // namespace kbemu
