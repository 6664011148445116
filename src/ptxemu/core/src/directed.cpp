// Compiled with -frounding-math: the host's own rounding mode does the work.
#include <cfenv>

#include "lane.hpp"

namespace ptxemu {
namespace {

class RoundingMode {
public:
    explicit RoundingMode(int mode) { std::fesetround(mode); }
    ~RoundingMode() { std::fesetround(FE_TONEAREST); }
};

}  // namespace

#define EMU_DIRECTED1(name, mode, T, ...)                                    \
    {#name, Kind::lane, EMU_HANDLER(T, EMU_SOURCE(T, a, 1);                   \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l];                                        \
             return __VA_ARGS__;                                            \
         });)},
#define EMU_DIRECTED2(name, mode, T, ...)                                    \
    {#name, Kind::lane, EMU_HANDLER(T, EMU_SOURCE(T, a, 1); EMU_SOURCE(T, b, 2); \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l], b = b_lanes[l];                        \
             return __VA_ARGS__;                                            \
         });)},
#define EMU_DIRECTED3(name, mode, T, ...)                                    \
    {#name, Kind::lane, EMU_HANDLER(T, EMU_SOURCE(T, a, 1); EMU_SOURCE(T, b, 2); EMU_SOURCE(T, c, 3); \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<T>(i.operand[0]), m, [=](int l) -> T {              \
             const T a = a_lanes[l], b = b_lanes[l], c = c_lanes[l];        \
             return __VA_ARGS__;                                            \
         });)},
#define EMU_ALL_MODES(stem, n, ...)                                  \
    EMU_DIRECTED##n(stem##_rz_f32, FE_TOWARDZERO, f32, __VA_ARGS__)  \
    EMU_DIRECTED##n(stem##_rm_f32, FE_DOWNWARD, f32, __VA_ARGS__)    \
    EMU_DIRECTED##n(stem##_rp_f32, FE_UPWARD, f32, __VA_ARGS__)      \
    EMU_DIRECTED##n(stem##_rz_f64, FE_TOWARDZERO, f64, __VA_ARGS__)  \
    EMU_DIRECTED##n(stem##_rm_f64, FE_DOWNWARD, f64, __VA_ARGS__)    \
    EMU_DIRECTED##n(stem##_rp_f64, FE_UPWARD, f64, __VA_ARGS__)
#define EMU_FROM_INTEGER(name, mode, F, T)                                   \
    {#name, Kind::lane, EMU_HANDLER(F, EMU_SOURCE(T, a, 1);                   \
         const RoundingMode scope(mode);                                    \
         assign(w.lanes<F>(i.operand[0]), m, [=](int l) -> F { return static_cast<F>(a_lanes[l]); });)},
#define DIRECTED_INTEGER(F, T)                                  \
    EMU_FROM_INTEGER(cvt_rz_##F##_##T, FE_TOWARDZERO, F, T)      \
    EMU_FROM_INTEGER(cvt_rm_##F##_##T, FE_DOWNWARD, F, T)        \
    EMU_FROM_INTEGER(cvt_rp_##F##_##T, FE_UPWARD, F, T)
#define DIRECTED1(stem, ...) EMU_ALL_MODES(stem, 1, __VA_ARGS__)
#define DIRECTED2(stem, ...) EMU_ALL_MODES(stem, 2, __VA_ARGS__)
#define DIRECTED3(stem, ...) EMU_ALL_MODES(stem, 3, __VA_ARGS__)

const std::vector<Operation>& directed_operations() {
    static const std::vector<Operation> table = {
#include "directed.def"
    };
    return table;
}

}  // namespace ptxemu
