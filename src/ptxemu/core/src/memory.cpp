#include "access.hpp"
#include "checks.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

template <class T>
inline T at(const u8* pointer, int element) {
    T value;
    std::memcpy(&value, pointer + static_cast<std::size_t>(element) * sizeof(T), sizeof(T));
    return value;
}

template <class M, class R, int N>
void load_regular(Warp& warp, const Instruction& instruction, const Regular& from) {
    for (int element = 0; element < N; ++element) {
        R* destination = warp.lanes<R>(instruction.operand[element]);
        if (from.pattern == Pattern::linear) {
            for (int l = 0; l < kLanes; ++l) destination[l] = static_cast<R>(at<M>(from.start, l * N + element));
        } else {
            const R value = static_cast<R>(at<M>(from.start, element));
            for (int l = 0; l < kLanes; ++l) destination[l] = value;
        }
    }
}

template <class M, class R, int N>
void load(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const Regular regular = open_regular(warp, instruction, active, sizeof(M) * N, Op::load);
    if (regular.pattern != Pattern::scattered) return load_regular<M, R, N>(warp, instruction, regular);
    const Access access = open_access(warp, instruction, active, sizeof(M) * N, Op::load);
    if (access.pattern == Pattern::fault) return;
    for (int element = 0; element < N; ++element) {
        R* destination = warp.lanes<R>(instruction.operand[element]);
        if (active == kAllLanes) {
            for (int l = 0; l < kLanes; ++l) destination[l] = static_cast<R>(at<M>(access.pointer[l], element));
        } else {
            for_each_lane(active, [&](int l) { destination[l] = static_cast<R>(at<M>(access.pointer[l], element)); });
        }
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
    for (int element = 0; element < N; ++element) {
        const R* source = warp.lanes<R>(instruction.operand[element]);
        const bool linear = to.pattern == Pattern::linear;
        for (int l = linear ? 0 : kLanes - 1; l < kLanes; ++l) {
            const M value = static_cast<M>(source[l]);
            std::memcpy(to.start + static_cast<std::size_t>((linear ? l * N : 0) + element) * sizeof(M), &value, sizeof(M));
        }
    }
}

template <class M, class R, int N>
void store(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const Regular regular = open_regular(warp, instruction, active, sizeof(M) * N, Op::store);
    if (regular.pattern != Pattern::scattered) return store_regular<M, R, N>(warp, instruction, regular);
    const Access access = warp.block->checks ? open_checked_store<M, R, N>(warp, instruction, active)
                                              : open_access(warp, instruction, active, sizeof(M) * N, Op::store);
    if (access.pattern == Pattern::fault) return;
    for (int element = 0; element < N; ++element) {
        const R* source = warp.lanes<R>(instruction.operand[element]);
        for_each_lane(active, [&](int l) {
            const M value = static_cast<M>(source[l]);
            std::memcpy(access.pointer[l] + element * sizeof(M), &value, sizeof(M));
        });
    }
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
