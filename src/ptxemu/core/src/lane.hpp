// Builds handlers of per-lane operations from expressions.
#pragma once

#include "machine.hpp"
#include "operations.hpp"

namespace ptxemu {

// Of the lanes that take part, what was evaluated for all.
template <class D>
[[gnu::noinline]] void take(D* destination, const D* evaluated, const pred* lanes) {
    for (int l = 0; l < kLanes; ++l) destination[l] = lanes[l] ? evaluated[l] : destination[l];
}

// Evaluates one value per lane into a register. Source and destination may be the same register, never overlap in
// part, which is what ivdep promises the compiler. Lanes that take no part are evaluated, too: one loop is compiled
// for each operation instead of two.
template <class D, class Evaluate>
inline void assign(D* destination, const pred* lanes, Evaluate evaluate) {
    alignas(64) D evaluated[kLanes];
    D* out = lanes == nullptr ? destination : evaluated;
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) out[l] = evaluate(l);
    if (lanes != nullptr) take(destination, evaluated, lanes);
}

}  // namespace ptxemu

// OPn(name, D, A, B, ...): D is the type of the result, A, B, C, E those of sources a, b, c, e; the expression follows.
#define EMU_SOURCE(T, name, k) const T* name##_lanes = w.lanes<T>(i.operand[k])
#define EMU_HANDLER(D, ...)                                                          \
    [](Warp& w, const Instruction& i, [[maybe_unused]] u32 active, const pred* m) { \
        [[maybe_unused]] const s64 imm = i.immediate;                               \
        __VA_ARGS__                                                                 \
    }
#define OP1(name, D, A, ...)                                                  \
    {#name, Kind::lane, EMU_HANDLER(D, EMU_SOURCE(A, a, 1);                     \
         assign(w.lanes<D>(i.operand[0]), m, [=](int l) -> D {                \
             const A a = a_lanes[l];                                          \
             return static_cast<D>(__VA_ARGS__);                              \
         });)},
#define OP2(name, D, A, B, ...)                                               \
    {#name, Kind::lane, EMU_HANDLER(D, EMU_SOURCE(A, a, 1); EMU_SOURCE(B, b, 2); \
         assign(w.lanes<D>(i.operand[0]), m, [=](int l) -> D {                \
             const A a = a_lanes[l];                                          \
             const B b = b_lanes[l];                                          \
             return static_cast<D>(__VA_ARGS__);                              \
         });)},
#define OP3(name, D, A, B, C, ...)                                                                    \
    {#name, Kind::lane, EMU_HANDLER(D, EMU_SOURCE(A, a, 1); EMU_SOURCE(B, b, 2); EMU_SOURCE(C, c, 3);     \
         assign(w.lanes<D>(i.operand[0]), m, [=](int l) -> D {                                        \
             const A a = a_lanes[l];                                                                  \
             const B b = b_lanes[l];                                                                  \
             const C c = c_lanes[l];                                                                  \
             return static_cast<D>(__VA_ARGS__);                                                      \
         });)},
#define OP4(name, D, A, B, C, E, ...)                                                                 \
    {#name, Kind::lane, EMU_HANDLER(D, EMU_SOURCE(A, a, 1); EMU_SOURCE(B, b, 2); EMU_SOURCE(C, c, 3);     \
         EMU_SOURCE(E, e, 4);                                                                          \
         assign(w.lanes<D>(i.operand[0]), m, [=](int l) -> D {                                        \
             const A a = a_lanes[l];                                                                  \
             const B b = b_lanes[l];                                                                  \
             const C c = c_lanes[l];                                                                  \
             const E e = e_lanes[l];                                                                  \
             return static_cast<D>(__VA_ARGS__);                                                      \
         });)},
