// Shared-memory barriers (mbarrier) without clusters: arrivals, transaction counts, phases.
//
// The opaque 64 bits hold: pending arrivals (20 bits), expected arrivals (20), transaction count (23, signed), phase
// (1, the highest). The state that an arrival returns is the word before it. Lanes act in ascending order.
//
// Operands: [0] result, [1] count, state or parity, [4] address.
#include "access.hpp"
#include "checks.hpp"
#include "machine.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

struct State {
    u64 pending : 20;
    u64 expected : 20;
    u64 transactions : 23;
    u64 phase : 1;
};

void open_when_done(State& state) {
    if (state.pending != 0 || state.transactions != 0) return;
    state.phase ^= 1;
    state.pending = state.expected;
}

template <class Change>
void update(Warp& warp, const Instruction& instruction, u32 active, Change change, Op op = Op::atomic) {
    const Access access = open_access(warp, instruction, active, sizeof(u64), op);
    if (access.pattern == Pattern::fault) return;
    for_each_lane(active, [&](int lane) {
        u64 word;
        std::memcpy(&word, access.pointer[lane], sizeof word);
        State state = bits<State>(word);
        change(state, lane, word);
        ++warp.worker->mbarrier_changes;
        word = bits<u64>(state);
        std::memcpy(access.pointer[lane], &word, sizeof word);
    });
}

void initialise(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32* count = warp.lanes<u32>(instruction.operand[1]);
    const auto begin = [&](State& state, int lane, u64) {
        state = {};
        state.pending = state.expected = count[lane];
    };
    update(warp, instruction, active, begin, Op::store);
}

void invalidate(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    update(warp, instruction, active, [](State& state, int, u64) { state = bits<State>(~0ull); });
}

// Arrival, perhaps leaving for good (Drop) or after raising the transaction count (Transaction).
template <bool Drop, bool Transaction>
void arrive(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32* count = warp.lanes<u32>(instruction.operand[1]);
    u64* result = instruction.flags & kHasResult ? warp.lanes<u64>(instruction.operand[0]) : nullptr;
    update(warp, instruction, active, [&](State& state, int lane, u64 before) {
        if (result != nullptr) result[lane] = before;
        if (Transaction) state.transactions += count[lane];
        if (Drop) state.expected -= count[lane];
        state.pending -= Transaction ? 1 : count[lane];
        open_when_done(state);
    });
    if (BlockChecks* checks = warp.block->checks.get()) checks->publish(warp);
}

// mbarrier.expect_tx (Sign 1) and complete_tx (Sign -1).
template <int Sign>
void transact(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32* count = warp.lanes<u32>(instruction.operand[1]);
    update(warp, instruction, active, [&](State& state, int lane, u64) {
        state.transactions += static_cast<u64>(Sign * static_cast<s64>(count[lane]));
        if (Sign < 0) open_when_done(state);
    });
}

// What st.async and red.async store has come. PTX defines them in clusters of several blocks alone; elsewhere an H200 ends
// with an illegal instruction.
void complete_store(Warp& warp, const Instruction& instruction, u32 active, const pred* lanes) {
    if (warp.worker->launch->cluster_blocks() == 1)
        return warp.worker->fail(Fault::illegal_instruction, instruction, "asynchronous store in a cluster of one block");
    transact<-1>(warp, instruction, active, lanes);
}

// Whether the phase is over; a warp in which some lane must still wait lets others run.
template <class Phase>
void test(Warp& warp, const Instruction& instruction, u32 active, Phase phase) {
    const Access access = open_access(warp, instruction, active, sizeof(u64), Op::load);
    if (access.pattern == Pattern::fault) return;
    Block& block = *warp.block;
    bool opened = false;
    for_each_lane(active, [&](int lane) {
        const u32 offset = static_cast<u32>(access.pointer[lane] - block.shared.data());
        if (!block.bulk.empty()) block.bulk.complete(block, offset);
        u64 word;
        std::memcpy(&word, access.pointer[lane], sizeof word);
        const State state = bits<State>(word);
        const bool over = state.phase != phase(lane), lacks_bytes = state.pending == 0 && state.transactions != 0;
        warp.lanes<pred>(instruction.operand[0])[lane] = over ? kTrue : 0;
        if (!over) {
            warp.yields = warp.starved = true;
            if (lacks_bytes || !block.closed.lacks_bytes)
                block.closed = {&instruction, warp.index * kLanes + static_cast<u32>(lane), offset, lacks_bytes};
        } else if (offset == block.closed.offset) {
            block.closed.lacks_bytes = false;
        }
        opened |= over;
    });
    if (opened && block.checks) block.checks->learn(warp);
}

void test_state(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u64* state = warp.lanes<u64>(instruction.operand[1]);
    test(warp, instruction, active, [&](int lane) { return bits<State>(state[lane]).phase; });
}

void test_parity(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32* parity = warp.lanes<u32>(instruction.operand[1]);
    test(warp, instruction, active, [&](int lane) { return u64{parity[lane] & 1}; });
}

void pending_count(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) {
        const State state = bits<State>(warp.lanes<u64>(instruction.operand[1])[lane]);
        warp.lanes<u32>(instruction.operand[0])[lane] = static_cast<u32>(state.pending);
    });
}

}  // namespace

std::string awaited(const u8* barrier) {
    u64 word;
    std::memcpy(&word, barrier, sizeof word);
    const State state = bits<State>(word);
    // A signed number of 23 bits; the field itself would be an int, which has no 41st bit.
    const s64 bytes = static_cast<s64>(static_cast<u64>(state.transactions) << 41) >> 41;
    if (state.pending > state.expected) return "more arrivals than expected have come in it";
    if (bytes < 0) return std::to_string(-bytes) + " bytes more than expected have come";
    if (bytes > 0 && state.pending == 0) return std::to_string(bytes) + " bytes of those expected do not come";
    return std::to_string(state.pending) + " of " + std::to_string(state.expected) + " arrivals do not come" +
           (bytes > 0 ? ", nor do " + std::to_string(bytes) + " bytes" : "");
}

void complete_transactions(u8* barrier, u32 bytes) {
    u64 word;
    std::memcpy(&word, barrier, sizeof word);
    State state = bits<State>(word);
    state.transactions -= bytes;
    open_when_done(state);
    word = bits<u64>(state);
    std::memcpy(barrier, &word, sizeof word);
}

const std::vector<Operation>& mbarrier_operations() {
    static const std::vector<Operation> table = {
        {"mbarrier_init", Kind::memory, initialise},
        {"mbarrier_inval", Kind::memory, invalidate},
        {"mbarrier_arrive", Kind::memory, arrive<false, false>},
        {"mbarrier_arrive_expect_tx", Kind::memory, arrive<false, true>},
        {"mbarrier_arrive_drop", Kind::memory, arrive<true, false>},
        {"mbarrier_expect_tx", Kind::memory, transact<1>},
        {"mbarrier_complete_tx", Kind::memory, transact<-1>},
        {"mbarrier_complete_store", Kind::memory, complete_store},
        {"mbarrier_test_wait", Kind::memory, test_state},
        {"mbarrier_test_wait_parity", Kind::memory, test_parity},
        {"mbarrier_pending_count", Kind::memory, pending_count},
    };
    return table;
}

}  // namespace ptxemu
