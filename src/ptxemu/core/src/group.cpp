// Turns of one warp: which lanes run together, and for how long.
#include <algorithm>

#include "calls.hpp"
#include "checks.hpp"
#include "scheduler.hpp"

namespace ptxemu {
namespace {

// A warp gives way after this many instructions, so that another can release it from a spin loop.
constexpr u64 kWarpQuota = 1u << 20;
// A diverged group gives way after this many, so that lanes of its own warp can.
constexpr u64 kGroupQuota = 1u << 17;
constexpr u64 kRotatedQuota = 1u << 12;
// Blocks that are under way together wait for each other in loops, or share out work: they take short turns.
constexpr u64 kTogetherQuota = 1u << 9;
constexpr u32 kNever = ~0u;

u32 lanes_at(const Warp& warp, u32 candidates, u32 pc) {
    u32 mask = 0;
    for (int l = 0; l < kLanes; ++l) mask |= u32{warp.pc[l] == pc} << l;
    return mask & candidates;
}

u32 lowest_pc(const Warp& warp, u32 candidates) {
    u32 lowest = kNever;
    for (int l = 0; l < kLanes; ++l) {
        const u32 pc = candidates >> l & 1 ? warp.pc[l] : kNever;
        lowest = std::min(lowest, pc);
    }
    return lowest;
}

u32 highest_pc(const Warp& warp, u32 candidates) {
    u32 highest = 0;
    for_each_lane(candidates, [&](int l) { highest = std::max(highest, warp.pc[l]); });
    return highest;
}

void set_pc(Warp& warp, u32 lanes, u32 pc) {
    for_each_lane(lanes, [&](int l) { warp.pc[l] = pc; });
}

void arrive(Warp& warp, const Instruction& instruction, u32 lanes) {
    const u32* id = warp.lanes<u32>(instruction.operand[1]);
    const u32* count = warp.lanes<u32>(instruction.operand[2]);
    const pred* vote = warp.lanes<pred>(instruction.operand[3]);
    const bool whole_block = instruction.flags & kFullBlockBarrier;
    const bool waits = !(instruction.flags & kBarrierArriveOnly);
    for_each_lane(lanes, [&](int l) {
        Barrier& barrier = warp.block->barriers[id[l] % kBarriers];
        ++barrier.arrived;
        barrier.expected = whole_block ? 0 : count[l];
        if (static_cast<Reduction>(instruction.extra) != Reduction::none) {
            barrier.reduced_and &= vote[l];
            barrier.reduced_or |= vote[l];
            barrier.reduced_count += vote[l] & 1;
        }
        warp.barrier_of[l] = id[l] % kBarriers;
        if (BlockChecks* checks = warp.block->checks.get()) checks->arrive(warp, id[l] % kBarriers, waits);
    });
    if (waits) warp.waiting |= lanes;
}

// The barrier of a cluster, at which arrivals and waits are apart: those wait for whom it has not been opened yet.
void meet_cluster(Warp& warp, const Instruction& instruction, u32 lanes) {
    if (instruction.flags & kBarrierArriveOnly) {
        warp.cluster_arrived |= lanes;
        if (BlockChecks* checks = warp.block->checks.get()) checks->arrive(warp, kOfCluster, false);
        return;
    }
    const u32 held = lanes & ~warp.cluster_passed;
    warp.cluster_passed &= ~lanes;
    warp.waiting |= held;
    for_each_lane(held, [&](int l) { warp.barrier_of[l] = kOfCluster; });
}

// The lanes that run together, from the moment they are chosen until they split, wait or meet others.
template <bool Counted>
class Group {
public:
    Group(Warp& warp, u32 lanes, u32 others, bool forced)
        : warp_(warp),
          worker_(*warp.worker),
          code_(warp.worker->launch->function->code.data()),
          pc_(warp.pc[first_lane(lanes)]),
          others_(others),
          limit_(lowest_pc(warp, others)),
          forced_(forced) {
        activate(lanes);
    }

    void run(u64 quota) {
        const u64 stop = worker_.instructions + quota;
        while (step() && worker_.instructions < stop) {
        }
        if (running_) set_pc(warp_, active_, pc_);
    }

    void run_rotated() {
        limit_ = kNever;
        run(kRotatedQuota);
    }

private:
    void activate(u32 lanes) {
        active_ = lanes;
        lane_count_ = popcount(lanes);
        if (lanes != kAllLanes) expand(lanes, expanded_);
    }

    const pred* lane_mask() const { return active_ == kAllLanes ? nullptr : expanded_; }

    // Executes one instruction; false when the group must be chosen anew.
    bool step() {
        const Instruction& instruction = code_[pc_];
        ++worker_.instructions;
        u32 taken = active_;
        if (instruction.flags & kGuarded) taken = guarded(instruction);
        if constexpr (Counted) {
            ++worker_.counters.executed[pc_];
            // A lane that does not take a branch executes it all the same.
            const bool all = !(instruction.flags & kGuarded) || instruction.kind == Kind::branch;
            worker_.counters.thread_count[pc_] += all ? lane_count_ : popcount(taken);
        }
        switch (instruction.kind) {
            case Kind::lane: execute_lanes(instruction, taken); break;
            case Kind::memory:
                if (taken != 0) instruction.handler(warp_, instruction, taken, nullptr);
                if (worker_.failed()) return stop();
                if (warp_.yields) return pause();
                break;
            case Kind::branch: return branch(instruction, taken);
            case Kind::call: return call(instruction, taken);
            case Kind::ret: return ret(instruction, taken);
            case Kind::exit: return exit(taken);
            case Kind::barrier: return barrier(instruction, taken);
            case Kind::warp: return together(instruction, taken);
            case Kind::trap: return stop();
        }
        return advance();
    }

    bool advance() {
        ++pc_;
        if (pc_ >= limit_) return meet();
        return true;
    }

    bool meet() {
        set_pc(warp_, active_, pc_);
        running_ = false;
        return false;
    }

    bool stop() { return meet(); }

    bool pause() {
        ++pc_;
        return meet();
    }

    u32 guarded(const Instruction& instruction) const {
        const u32 mask = mask_of(warp_.lanes<pred>(instruction.guard));
        return (instruction.flags & kGuardNegated ? ~mask : mask) & active_;
    }

    void execute_lanes(const Instruction& instruction, u32 taken) {
        if (taken == active_) {
            instruction.handler(warp_, instruction, active_, lane_mask());
        } else if (taken != 0) {
            alignas(64) pred lanes[kLanes];
            expand(taken, lanes);
            instruction.handler(warp_, instruction, taken, lanes);
        }
    }

    bool branch(const Instruction& instruction, u32 taken) {
        const u32 target = static_cast<u32>(instruction.immediate);
        if constexpr (Counted) {
            worker_.counters.branches += (instruction.flags & kGuarded) != 0;
            worker_.counters.divergent_branches += taken != 0 && taken != active_;
        }
        if (taken == active_) {
            pc_ = target;
            if (pc_ < limit_) return true;
            return meet();
        }
        if (taken == 0) return advance();
        set_pc(warp_, active_, pc_ + 1);
        set_pc(warp_, taken, target);
        running_ = false;
        return false;
    }

    bool call(const Instruction& instruction, u32 taken) {
        set_pc(warp_, active_, pc_ + 1);
        enter_function(warp_, instruction, taken, pc_ + 1, instruction.immediate != 0);
        return jumped();
    }

    bool ret(const Instruction& instruction, u32 taken) {
        set_pc(warp_, active_, pc_ + 1);
        leave_function(warp_, instruction, taken);
        return jumped();
    }

    // Lanes that went to different places are chosen anew.
    bool jumped() {
        pc_ = warp_.pc[first_lane(active_)];
        if (!worker_.failed() && pc_ < limit_ && lanes_at(warp_, active_, pc_) == active_) return true;
        running_ = false;
        return false;
    }

    bool exit(u32 taken) {
        warp_.live &= ~taken;
        set_pc(warp_, active_ & ~taken, pc_ + 1);
        running_ = false;
        return false;
    }

    bool barrier(const Instruction& instruction, u32 taken) {
        if constexpr (Counted) ++worker_.counters.barriers;
        set_pc(warp_, active_, pc_ + 1);
        if (instruction.flags & kClusterBarrier)
            meet_cluster(warp_, instruction, taken);
        else
            arrive(warp_, instruction, taken);
        running_ = false;
        return false;
    }

    // Lanes wait here until all live members have come; a group that nobody else can reach runs as it is.
    bool together(const Instruction& instruction, u32 taken) {
        if (taken == 0) return advance();
        if (taken != active_) {
            set_pc(warp_, active_ & ~taken, pc_ + 1);
            others_ |= active_ & ~taken;
            limit_ = std::min(limit_, pc_ + 1);
            activate(taken);
        }
        const u32 joined = taken | lanes_at(warp_, warp_.parked, pc_);
        const u32* members = warp_.lanes<u32>(instruction.operand[4]);
        u32 needed = 0;
        for_each_lane(joined, [&](int l) { needed |= members[l]; });
        if ((needed & warp_.live & ~joined) != 0 && !forced_) {
            uncount(instruction, taken);
            warp_.parked |= joined;
            set_pc(warp_, taken, pc_);
            running_ = false;
            return false;
        }
        warp_.parked &= ~joined;
        if (BlockChecks* checks = warp_.block->checks.get()) checks->collective(warp_, instruction, joined, forced_);
        forced_ = false;
        if (joined != active_) activate(joined);
        instruction.handler(warp_, instruction, joined, lane_mask());
        if (warp_.retries) return again(instruction);
        return worker_.failed() ? stop() : advance();
    }

    // The same instruction later, when other warps have had their turn.
    bool again(const Instruction& instruction) {
        uncount(instruction, active_);
        warp_.retries = false;
        warp_.yields = true;
        return meet();
    }

    // The instruction is issued once, when all have arrived.
    void uncount([[maybe_unused]] const Instruction& instruction, u32 taken) {
        --worker_.instructions;
        if constexpr (Counted) {
            --worker_.counters.executed[pc_];
            worker_.counters.thread_count[pc_] -= popcount(taken);
        }
    }

    Warp& warp_;
    Worker& worker_;
    const Instruction* code_;
    u32 pc_;
    u32 active_ = 0;
    u32 lane_count_ = 0;
    u32 others_;
    u32 limit_;
    bool forced_;
    bool running_ = true;
    alignas(64) pred expanded_[kLanes];
};

template <bool Counted>
void take_turn(Warp& warp) {
    Turns& turns = warp.worker->turns;
    const bool together = warp.worker->launch->together;
    const u64 turn = turns.shuffled() ? turns.quantum() : together ? kTogetherQuota : kWarpQuota;
    const u64 stop = warp.worker->instructions + turn;
    const u64 quota = together ? kTogetherQuota : kGroupQuota;
    warp.yields = false;
    while (!warp.worker->failed() && warp.worker->instructions < stop && !warp.yields) {
        u32 ready = warp.live & ~warp.waiting & ~warp.parked;
        bool forced = false;
        if (ready == 0) {
            ready = warp.live & warp.parked;
            if (ready == 0) return;
            forced = true;
            const u32 first = lanes_at(warp, ready, lowest_pc(warp, ready));
            warp.parked &= ~first;
            ready = first;
        }
        const u32 chosen = lanes_at(warp, ready, lowest_pc(warp, ready));
        const u32 others = ready & ~chosen;
        const u64 before = warp.worker->instructions;
        Group<Counted>(warp, chosen, others, forced).run(std::min(quota, turn));
        const u64 used = warp.worker->instructions - before;
        warp.held = others != 0 && used >= std::min(quota, turn) ? warp.held + used : 0;
        const bool gave_way = warp.held >= quota || warp.yields;
        if (!gave_way || others == 0) continue;
        warp.held = 0;
        const u32 rest = warp.live & ~warp.waiting & ~warp.parked;
        if (rest == 0) continue;
        const u32 rotated = lanes_at(warp, rest, highest_pc(warp, rest));
        warp.yields = false;
        Group<Counted>(warp, rotated, rest & ~rotated, false).run_rotated();
    }
}

}  // namespace

void run_warp(Warp& warp) { warp.worker->launch->counted ? take_turn<true>(warp) : take_turn<false>(warp); }

}  // namespace ptxemu
