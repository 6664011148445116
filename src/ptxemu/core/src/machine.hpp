// State of a running launch: launch -> worker (one host thread) -> block -> warp.
//
// Scheduling model. A warp holds 32 lanes with a program counter each. It always runs the group of lanes with the
// lowest counter, and lanes that meet at one counter continue together: for structured control flow that is
// reconvergence at the immediate post-dominator. Lanes at a barrier are parked; so are lanes at a warp-synchronous
// instruction until every live lane of the member mask has arrived. The warps of a block run one after the other,
// each until all of its lanes are parked or gone or its quota is used (so that a spinning warp cannot starve the one
// it waits for). Blocks run in ascending order; block b belongs to virtual SM b % sm_count, and a worker owns whole
// SMs, so that counters do not depend on the number of workers. Blocks of a cluster are under way together: each round
// gives every block of it a turn (cluster.cpp).
//
// Not modelled: caches' timing, memory ordering weaker than program order of the interleaving above, data races
// (the interleaving is fixed), independent progress of blocks beyond the quota.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "accounting.hpp"
#include "bulk.hpp"
#include "crew.hpp"
#include "program.hpp"
#include "texture.hpp"
#include "turns.hpp"

namespace ptxemu {

enum class Fault { none, illegal_address, misaligned_address, illegal_instruction, trap, assertion, deadlock, unsampled };

struct FaultReport {
    Fault fault = Fault::none;
    std::string message;
};

// Generic addresses of these windows name shared, local and parameter memory; everything below is global.
constexpr u64 kSharedWindow = 1ull << 56;
constexpr u64 kLocalWindow = 2ull << 56;
constexpr u64 kParamWindow = 3ull << 56;
constexpr u64 kWindowMask = ~((1ull << 56) - 1);

// A shared address is an offset into the memory of the block itself or, with the rank of a block of its cluster and one
// in the bits from here on, of that block.
constexpr u32 kRankShift = 24, kRankMask = 0xff;

// Allocated device memory, ascending. Rebuilt by the runtime, constant during a launch.
struct Segments {
    std::vector<Segment> list;

    // Index of the segment that holds the address; list.size() when none does.
    std::size_t find(u64 address) const;
};

struct LaunchChecks;
class DeviceHeap;
class BlockChecks;

struct Launch {
    const Module* module;
    const Function* function;
    u32 grid[3], block[3];
    u32 cluster[3];  // blocks of a cluster along each axis
    u32 dynamic_shared;
    std::vector<u8> parameters;
    const Segments* segments;
    u32 number;      // of all launches of the process, from 1: %gridid
    u32 sm_count;
    u32 l1_bytes;
    u32 warps_per_sm;  // that share an L1
    bool counted;
    bool together;     // all blocks are under way at once, as on a GPU that holds them all
    u64 workspace;     // device memory that cooperative groups find through %envreg1 and 2; 0 when not cooperative
    u64 instruction_limit;  // warp instructions after which a worker gives up
    u64 sample;             // warp instructions after which whole SMs are left out; 0: none is
    std::vector<u8> incomplete;  // per segment: a sampled launch has left parts of it out; empty when there is none
    GranuleMap* granules;
    DeviceHeap* heap;      // of malloc() in kernels
    const Textures* textures;
    LaunchChecks* checks;  // null: nothing is checked
    u64 schedule;           // seed of the order of turns; 0: the default order
    u64 window;             // clusters that the GPU holds at once, if these may begin in any order; 0: they may not

    // Whether what an instruction reads there may decide what is executed, and is not all there.
    bool misleads(u32 memory, std::size_t segment) const {
        return !incomplete.empty() && incomplete[segment] != 0 && function->memory[memory].steers;
    }
    u32 threads_per_block() const { return block[0] * block[1] * block[2]; }
    u64 blocks() const { return static_cast<u64>(grid[0]) * grid[1] * grid[2]; }
    u32 cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
    u64 clusters() const { return blocks() / cluster_blocks(); }
    // Clusters fall on groups of SMs in turn, each of their blocks on an SM of its own.
    u32 sm_groups() const { return std::max(1u, sm_count / cluster_blocks()); }
};

struct Block;
class Warp;

struct Worker {
    const Launch* launch;
    Counters counters;
    std::vector<L1Cache> caches;  // one per SM this worker owns
    std::vector<u32> segment_hint;  // per memory instruction: the segment it hit last
    FaultReport fault;
    u64 instructions = 0;
    const Warp* running = nullptr;  // whose turn it was last
    u64 mbarrier_changes = 0;
    u64 active_lanes = 0;
    Turns turns;
    // With checks a kernel goes on after accesses that a GPU does not survive, without them, as far as that is bounded.
    FaultReport survived;
    u64 left_out = 0, gives_up_at = ~u64{0};
    alignas(64) u8 nowhere[64];  // where lanes read zeros and write what nobody reads
    void fail(Fault fault, const Instruction& at, const std::string& message);
    void survive(Fault fault, const Instruction& at, const std::string& message);
    bool failed() const { return fault.fault != Fault::none; }
};

// Calls that one lane is in: where each returns to, and the registers it saved.
struct CallStack {
    struct Entry {
        u32 return_to, frame_bytes, saved;
    };
    std::vector<Entry> entries;
    std::vector<u64> registers;
};

class Warp {
public:
    u8* registers;
    u8* local;  // lane l's local memory begins at l * local_bytes
    Block* block;
    Worker* worker;
    u32 index;

    u32 live;     // lanes that have not exited
    u32 waiting;  // lanes at a block barrier
    u32 parked;   // lanes at a warp-synchronous instruction
    u32 cluster_arrived, cluster_passed;  // lanes that have arrived at their cluster's barrier, that it is open for
    bool yields;  // an instruction that waits for other warps asks to let them run
    bool starved;  // its last turn did nothing but find an mbarrier closed, or its warpgroup behind
    bool retries;  // the instruction could not be executed yet
    u32 products;  // wgmmas that it has issued
    std::vector<u32> committed;  // how many they were at each commit
    u32 pc[kLanes];
    u32 barrier_of[kLanes];
    u64 executed;  // instructions
    u64 held;      // of these, by groups that were interrupted while others of the warp were ready
    std::vector<CallStack> calls;  // per lane; empty until the first call

    template <class T>
    T* lanes(u32 offset) const {
        return reinterpret_cast<T*>(registers + offset);
    }
};

// The registers of an instruction that has more than fit.
inline const u32* register_list(const Warp& warp, const Instruction& i) {
    return warp.worker->launch->function->extra.data() + i.operand[3];
}

struct Barrier {
    u32 arrived = 0;    // lanes
    u32 expected = 0;   // lanes; 0: all live threads of the block
    u32 reduced_and = kAllLanes, reduced_or = 0, reduced_count = 0;
    u32 generation = 0;
};

constexpr int kBarriers = 16;
constexpr u32 kOfCluster = kBarriers;  // stands for the barrier of the cluster

// Blocks that reach each other's shared memory, by rank.
struct Cluster {
    std::vector<Block*> blocks;
};

struct Block {
    std::vector<Warp> warps;
    std::vector<u8> shared;
    u32 shared_bytes;
    u32 position[3];
    u32 sm;
    L1Cache* l1;
    RepeatedReads reads;
    Barrier barriers[kBarriers];
    BulkCopies bulk;
    // The last lane that has found an mbarrier closed; one that lacks nothing but bytes goes before those that others
    // have yet to arrive at, which may be waiting for it.
    struct ClosedBarrier {
        const Instruction* at;
        u32 thread, offset;  // kNoBarrier: it waits for the other warps of its warpgroup
        bool lacks_bytes = false;
    } closed;
    static constexpr u32 kNoBarrier = ~0u;
    Cluster* cluster;
    u32 rank;   // in its cluster
    bool gone;  // all of its threads have exited
    std::unique_ptr<BlockChecks> checks;  // null when nothing is checked

    Block();
    ~Block();

    // The block of the cluster that holds a shared address; null when the cluster has none of that rank.
    Block* holder(u64 address) {
        const u64 rank = address >> kRankShift & kRankMask;
        return rank == 0 ? this : rank <= cluster->blocks.size() ? cluster->blocks[rank - 1] : nullptr;
    }
};

struct Execution {
    FaultReport fault;
    Counters counters;
    u64 instructions = 0;
    u64 blocks = 0;  // executed ones: fewer than the launch has when it was sampled
};

// Runs a launch on `threads` host threads. A sampled launch executes all blocks of some SMs, spread over the grid: of
// one SM first, then of as many as the sample has room for, two at least, whatever the number of threads.
// `threads`: most that take part, at most those of the crew.
Execution execute(const Launch& launch, Crew& crew, unsigned threads);

}  // namespace ptxemu
