#include "access.hpp"
#include "checks.hpp"
#include "operations.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ptxemu {
namespace {

// The elements of a vector that a lane accesses. A GPU reads and writes aligned vectors of up to 16 bytes in one piece, and
// kernels whose blocks pass each other a state beside its value rely on that (CUB's look-back does). An aligned 16-byte
// move is one piece on processors with AVX, too.
template <class M, int N>
struct alignas(sizeof(M) * N < 16 ? sizeof(M) * N : 16) Vector {
    M element[N];
};

template <std::size_t bytes>
inline void move_whole(void* to, const void* from) {
    if constexpr (bytes > 16) {
        move_whole<16>(to, from);
        move_whole<bytes - 16>(static_cast<u8*>(to) + 16, static_cast<const u8*>(from) + 16);
    } else if constexpr (bytes == 16) {
#if defined(__SSE2__)
        // Not by intrinsics: a compiler may make two moves of them where elements are wanted one by one.
        __m128i whole;
        asm volatile("movdqu %1, %0" : "=x"(whole) : "m"(*static_cast<const __m128i_u*>(from)));
        asm volatile("movdqu %1, %0" : "=m"(*static_cast<__m128i_u*>(to)) : "x"(whole));
#else
        __atomic_store_n(static_cast<u64*>(to), __atomic_load_n(static_cast<const u64*>(from), __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        __atomic_store_n(static_cast<u64*>(to) + 1, __atomic_load_n(static_cast<const u64*>(from) + 1, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
#endif
    } else {
        std::memcpy(to, from, bytes);
    }
}

template <class M, class R, int N>
inline void load_vector(R* const (&destination)[N], int lane, const u8* from) {
    Vector<M, N> vector;
    move_whole<sizeof(vector)>(&vector, from);
    for (int element = 0; element < N; ++element) destination[element][lane] = static_cast<R>(vector.element[element]);
}

template <class M, class R, int N>
inline void store_vector(u8* to, R* const (&source)[N], int lane) {
    Vector<M, N> vector;
    for (int element = 0; element < N; ++element) vector.element[element] = static_cast<M>(source[element][lane]);
    move_whole<sizeof(vector)>(to, &vector);
}

template <class R, int N>
struct Registers {
    R* lanes[N];
    Registers(Warp& warp, const Instruction& instruction) {
        for (int element = 0; element < N; ++element) lanes[element] = warp.lanes<R>(instruction.operand[element]);
    }
};

template <class M, class R, int N>
void load_regular(Warp& warp, const Instruction& instruction, const Regular& from) {
    const Registers<R, N> to(warp, instruction);
    if (from.pattern == Pattern::linear) {
        for (int l = 0; l < kLanes; ++l) load_vector<M, R, N>(to.lanes, l, from.start + l * N * sizeof(M));
    } else {
        load_vector<M, R, N>(to.lanes, 0, from.start);
        for (R* destination : to.lanes)
            for (int l = 1; l < kLanes; ++l) destination[l] = destination[0];
    }
}

template <class M, class R, int N>
void load(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const Regular regular = open_regular(warp, instruction, active, sizeof(M) * N, Op::load);
    if (regular.pattern != Pattern::scattered) return load_regular<M, R, N>(warp, instruction, regular);
    const Access access = open_access(warp, instruction, active, sizeof(M) * N, Op::load);
    if (access.pattern == Pattern::fault) return;
    const Registers<R, N> to(warp, instruction);
    if (active == kAllLanes) {
        for (int l = 0; l < kLanes; ++l) load_vector<M, R, N>(to.lanes, l, access.pointer[l]);
    } else {
        for_each_lane(active, [&](int l) { load_vector<M, R, N>(to.lanes, l, access.pointer[l]); });
    }
}

// What a store is about to write, so that the checks can tell writes of the same value.
template <class M, class R, int N>
Access open_checked_store(Warp& warp, const Instruction& instruction, u32 active) {
    u8 values[kLanes][16];
    for (int element = 0; element < N; ++element)
        for (int l = 0; l < kLanes; ++l) {
            const M value = static_cast<M>(warp.lanes<R>(instruction.operand[element])[l]);
            std::memcpy(values[l] + element * sizeof(M), &value, sizeof(M));
        }
    warp.block->checks->stored = values;
    const Access access = open_access(warp, instruction, active, sizeof(M) * N, Op::store);
    warp.block->checks->stored = nullptr;
    return access;
}

// When lanes collide the highest one wins: one of the outcomes hardware may choose.
template <class M, class R, int N>
void store_regular(Warp& warp, const Instruction& instruction, const Regular& to) {
    const Registers<R, N> from(warp, instruction);
    const bool linear = to.pattern == Pattern::linear;
    for (int l = linear ? 0 : kLanes - 1; l < kLanes; ++l)
        store_vector<M, R, N>(to.start + (linear ? l * N * sizeof(M) : 0), from.lanes, l);
}

template <class M, class R, int N>
void store(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const Regular regular = open_regular(warp, instruction, active, sizeof(M) * N, Op::store);
    if (regular.pattern != Pattern::scattered) return store_regular<M, R, N>(warp, instruction, regular);
    const Access access = warp.block->checks ? open_checked_store<M, R, N>(warp, instruction, active)
                                              : open_access(warp, instruction, active, sizeof(M) * N, Op::store);
    if (access.pattern == Pattern::fault) return;
    const Registers<R, N> from(warp, instruction);
    for_each_lane(active, [&](int l) { store_vector<M, R, N>(access.pointer[l], from.lanes, l); });
}

// cp.async, executed at once: operand[0] is the shared destination (its offset in operand[1]), operand[2] the bytes
// to write, operand[3] a register with the bytes to read (the rest becomes zero).
void copy_async(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32 bytes = instruction.operand[2];
    alignas(64) u64 target[kLanes], source[kLanes];
    read_addresses(warp, instruction.operand[0], (instruction.flags & kHasResult) != 0,
                   static_cast<s32>(instruction.operand[1]), target);
    for (u64& one : target) one = static_cast<u32>(one);
    read_addresses(warp, instruction.operand[4], true, instruction.immediate, source);
    const u32* read_bytes = warp.lanes<u32>(instruction.operand[3]);
    u32 reading = 0;
    for_each_lane(active, [&](int l) { reading |= u32{read_bytes[l] != 0} << l; });
    Access from{};
    if (reading != 0) {
        from = open_addresses(warp, instruction, Space::global, source, reading, bytes, Op::load, instruction.memory,
                              read_bytes);
        if (from.pattern == Pattern::fault) return;
    }
    const Access to = open_addresses(warp, instruction, Space::shared, target, active, bytes, Op::store,
                                     instruction.memory + 1);
    if (to.pattern == Pattern::fault) return;
    for_each_lane(active, [&](int l) {
        const u32 copied = read_bytes[l] < bytes ? read_bytes[l] : bytes;
        if (copied != 0) std::memcpy(to.pointer[l], from.pointer[l], copied);
        std::memset(to.pointer[l] + copied, 0, bytes - copied);
    });
}

}  // namespace

#define LOAD(stem, M, R)                                    \
    {#stem "_v1", Kind::memory, load<M, R, 1>},             \
    {#stem "_v2", Kind::memory, load<M, R, 2>},             \
    {#stem "_v4", Kind::memory, load<M, R, 4>},
#define STORE(stem, M, R)                                   \
    {#stem "_v1", Kind::memory, store<M, R, 1>},            \
    {#stem "_v2", Kind::memory, store<M, R, 2>},            \
    {#stem "_v4", Kind::memory, store<M, R, 4>},

const std::vector<Operation>& memory_operations() {
    static const std::vector<Operation> table = {
#include "memory.def"
        {"cp_async", Kind::memory, copy_async},
    };
    return table;
}

}  // namespace ptxemu
