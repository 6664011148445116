#include "access.hpp"
#include "half.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

template <class H>
struct Pair {
    H x, y;
};

template <int Bytes>
struct Word;
template <>
struct Word<2> {
    using type = u16;
};
template <>
struct Word<4> {
    using type = u32;
};
template <>
struct Word<8> {
    using type = u64;
};

// Other workers may update the same word, hence the exchange loop on the host's own atomics.
template <class T, class Update>
T update_atomically(u8* pointer, Update update) {
    using W = typename Word<sizeof(T)>::type;
    W* word = reinterpret_cast<W*>(pointer);
    W old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, bits<W>(update(bits<T>(old))), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return bits<T>(old);
}

// Lanes act in ascending order. operand[0] takes the old value, operand[1] and [2] are a and b.
template <class T, class Update>
void atomic(Warp& warp, const Instruction& instruction, u32 active, Update update) {
    const Access access = open_access(warp, instruction, active, sizeof(T), Op::atomic);
    if (access.pattern == Pattern::fault) return;
    T* result = warp.lanes<T>(instruction.operand[0]);
    const T* a = warp.lanes<T>(instruction.operand[1]);
    const T* b = warp.lanes<T>(instruction.operand[2]);
    const bool has_result = instruction.flags & kHasResult;
    for_each_lane(active, [&](int l) {
        const T left = a[l], right = b[l];
        const T old = update_atomically<T>(access.pointer[l], [&](T o) { return update(o, left, right); });
        if (has_result) result[l] = old;
    });
}

// N elements per lane: Function::extra holds the registers of the old values, then those of the operands, from
// operand[3] on.
template <class T, int N, class Update>
void atomic_vector(Warp& warp, const Instruction& instruction, u32 active, Update update) {
    const Access access = open_access(warp, instruction, active, sizeof(T) * N, Op::atomic);
    if (access.pattern == Pattern::fault) return;
    const u32* registers = warp.worker->launch->function->extra.data() + instruction.operand[3];
    const bool has_result = instruction.flags & kHasResult;
    for_each_lane(active, [&](int l) {
        for (int element = 0; element < N; ++element) {
            const T operand = warp.lanes<T>(registers[N + element])[l];
            const T old = update_atomically<T>(access.pointer[l] + element * sizeof(T),
                                               [&](T o) { return update(o, operand, operand); });
            if (has_result) warp.lanes<T>(registers[element])[l] = old;
        }
    });
}

// Of 16 bytes: the function's extra registers hold the halves of the old value, of a and of b, from operand[3] on.
template <bool Compares>
__attribute__((target("cx16"))) void atomic_b128(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    using Wide = unsigned __int128;
    const Access access = open_access(warp, instruction, active, sizeof(Wide), Op::atomic);
    if (access.pattern == Pattern::fault) return;
    const u32* registers = warp.worker->launch->function->extra.data() + instruction.operand[3];
    const auto half = [&](int which, int l) -> u64& { return warp.lanes<u64>(registers[which])[l]; };
    const auto whole = [&](int low, int l) { return Wide{half(low + 1, l)} << 64 | half(low, l); };
    for (int l = 0; l < static_cast<int>(kLanes); ++l) {
        if (!(active >> l & 1)) continue;
        Wide* word = reinterpret_cast<Wide*>(access.pointer[l]);
        const Wide a = whole(2, l), b = whole(4, l);
        Wide old = *word, found;
        while ((found = __sync_val_compare_and_swap(word, old, !Compares ? a : old == a ? b : old)) != old) old = found;
        if (!(instruction.flags & kHasResult)) continue;
        half(0, l) = static_cast<u64>(old);
        half(1, l) = static_cast<u64>(old >> 64);
    }
}

// A NaN loses against a number; -0 is below +0.
template <class H>
H smaller(H a, H b) {
    const f32 x = widen(a), y = widen(b);
    if (x != x) return b;
    return y != y || x < y || (x == y && std::signbit(x)) ? a : b;
}

template <class H>
H larger(H a, H b) {
    const f32 x = widen(a), y = widen(b);
    if (x != x) return b;
    return y != y || x > y || (x == y && !std::signbit(x)) ? a : b;
}

}  // namespace

#define EMU_VECTOR(name, n, T, ...)                                                       \
    {#name "_v" #n, Kind::memory, [](Warp& w, const Instruction& i, u32 active, const pred*) { \
         atomic_vector<T, n>(w, i, active, [](T o, T a, T) -> T { return __VA_ARGS__; }); \
     }},
#define ATOMIC_VECTOR(name, T, ...) \
    ATOMIC(name, T, __VA_ARGS__)    \
    EMU_VECTOR(name, 2, T, __VA_ARGS__) EMU_VECTOR(name, 4, T, __VA_ARGS__) EMU_VECTOR(name, 8, T, __VA_ARGS__)
#define ATOMIC(name, T, ...)                                                             \
    {#name, Kind::memory, [](Warp& w, const Instruction& i, u32 active, const pred*) {   \
         atomic<T>(w, i, active, []([[maybe_unused]] T o, [[maybe_unused]] T a, [[maybe_unused]] T b) -> T { return __VA_ARGS__; }); \
     }},

const std::vector<Operation>& atomic_operations() {
    static const std::vector<Operation> table = {
#include "atomic.def"
        {"atom_exch_b128", Kind::memory, atomic_b128<false>},
        {"atom_cas_b128", Kind::memory, atomic_b128<true>},
    };
    return table;
}

}  // namespace ptxemu
