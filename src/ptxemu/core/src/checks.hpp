// Run-time checks of memory and synchronisation. Off unless PTXEMU_CHECKS names a file for their findings: then
// Launch::checks is set and every block has BlockChecks; without it the only cost is a test of that pointer.
//
//   memcheck   out-of-bounds and freed global memory, out-of-bounds shared memory, misaligned addresses
//   initcheck  reads of global memory that nobody wrote since its allocation, and of shared memory that the block has
//              not written: one shadow bit per byte of global memory, the last write of each piece of shared memory
//   racecheck  two threads touch the same shared bytes, one of them writes, and nothing orders them
//              a bulk copy is an access of the copy engine, from its issue to the wait that ends it
//   synccheck  barriers that some threads never reach, warps split over several barriers, wrong member masks
//
// Order is happens-before at the grain of warps, and of lanes within a warp. A warp's clock ticks whenever it
// synchronises; knows[v] is the clock of warp v up to which its accesses come before what this warp does next.
// Barriers pass that knowledge on, and so do atomics on shared memory that return a value (any of them to any other,
// which may hide a race but never invents one). Among the lanes of a warp, __syncwarp and the other collectives do.
// Two writes of the same value, and atomics among themselves, are no race. Between blocks of a cluster nothing is
// checked but bounds.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "access.hpp"

namespace ptxemu {

enum class Tool : u8 { memcheck, initcheck, racecheck, synccheck };

constexpr u32 kNoInstruction = ~0u;

// One bug: all its occurrences at the same source lines (or, where these are not known, instructions) of one launch.
struct Finding {
    Tool tool;
    std::string kind, message;
    u32 at, other;  // indices into Function::code; other may be kNoInstruction
    u64 block;      // the lowest block in which it occurred, and the first thread there
    u32 thread;
    u64 count = 1;
};

class Findings {
public:
    // `places`: per instruction, what stands for its source line.
    explicit Findings(const std::vector<u32>& places) : places_(&places) {}
    // Keeps the one of the lowest block for each kind and place, and counts all.
    void add(const Finding& finding);
    void merge(const Findings& other);
    // Counts one more of a kind and place that has been told; false when it has not.
    bool again(Tool tool, const char* kind, u32 at, u32 other, u64 block);
    std::vector<Finding> sorted() const;

private:
    using Key = std::tuple<Tool, std::string, u32, u32>;
    u32 place(u32 at) const { return at == kNoInstruction ? at : places_->at(at); }
    Key key(Tool tool, const std::string& kind, u32 at, u32 other) const { return {tool, kind, place(at), place(other)}; }

    const std::vector<u32>* places_;
    std::map<Key, Finding> found_;
};

// Which bytes of device memory hold a value; all of those elsewhere do, and of managed memory, which the host writes, too.
// Safe among threads.
class InitializedBytes {
public:
    InitializedBytes(u64 base, u64 bytes);
    void mark(u64 address, u64 bytes);
    void clear(u64 address, u64 bytes);
    bool covers(u64 address, u64 bytes) const;
    // Takes over, byte by byte, what is known of another range.
    void copy(u64 to, u64 from, u64 bytes);

private:
    u64 base_, bytes_;
    u64* words_;
};

// What the checks of all blocks of one launch share.
struct LaunchChecks {
    LaunchChecks(const Module& module, const Function& function, InitializedBytes& initialized,
                 const std::vector<Segment>& freed);

    InitializedBytes& initialized;
    const std::vector<Segment>& freed;
    std::vector<bool> collective;  // per instruction class: orders the lanes of a warp
    u32 granule;                   // bytes of shared memory that every access touches together
    std::vector<u32> places;       // per instruction: the first of the same source line
    std::mutex mutex;              // of the findings
    Findings findings;
};

// One access of a warp to one address space; addresses are offsets into it.
struct CheckedAccess {
    const Warp& warp;
    const Instruction& instruction;
    const u64* address;
    u32 active, bytes;
    Op op;
    const u32* extent;  // per lane, where fewer bytes may be touched; else null
};

// The checks of one block after the other.
class BlockChecks {
public:
    BlockChecks(const Launch& launch, LaunchChecks& shared, u32 warps, u32 shared_bytes);
    // Hands the findings of all its blocks over.
    ~BlockChecks();

    void start(u64 block_number);
    void global(const CheckedAccess& access, Pattern pattern);
    void shared(const CheckedAccess& access);
    void memory_fault(const Warp& warp, const Instruction& at, int lane, const char* kind, std::string message);

    void arrive(const Warp& warp, u32 barrier, bool waits);
    void release(const Warp& warp, u32 barrier, u32 lanes);
    void reopen(u32 barrier);
    // Before a collective of a warp: `lanes` have come; `forced` when the others never will.
    void collective(const Warp& warp, const Instruction& at, u32 lanes, bool forced);
    void deadlock(const Block& block);

    // What an mbarrier orders: arrivals before what follows a test that finds its phase over.
    void publish(const Warp& warp) { order_by_atomics(warp.index); }
    void learn(const Warp& warp);

    // A bulk copy: when it is issued, when it is executed, and when the block ends without a wait for it.
    void issued(const Warp& warp, const Instruction& at, const BulkCopy& copy);
    void moved(const BulkCopy& copy);
    void unfinished(const BulkCopy& copy);

    // Threads wait at an mbarrier for ever.
    void starved(u32 thread, const Instruction& at, const std::string& message);

    // The asynchronous proxy: fences between what threads have written and what it reads, and wgmma's reads of its
    // operands, which last until its group is waited for.
    void fenced(const Warp& warp, u32 lanes);
    void multiplies(const Warp& warp, const Instruction& at);
    void operand(const Warp& warp, const Instruction& at, u64 begin, u32 bytes);
    void wgmma_fenced(const Warp& warp) { products_[warp.index].fenced = true; }
    void committed(const Warp& warp) {
        ++products_[warp.index].committed;
        products_[warp.index].open = false;
    }
    void waited(const Warp& warp, u32 left);
    void unfinished_products();

    // Another block of the cluster writes into the shared memory of this one.
    void written_from_outside(u64 offset, u64 bytes);

    // Of the store that is under way: 16 bytes per lane, or null when the values are not known.
    const u8 (*stored)[16] = nullptr;

private:
    struct Mark {
        u32 clock = 0, at = 0, request = 0;
        u16 thread = 0;
        bool atomic = false, outside = false;
    };
    struct Cell {
        Mark write;
        Mark last, lane, other;  // readers: the last; the last in another lane of its warp, and in another warp
        Mark product;            // the last wgmma that reads it; `request` is its group
    };
    // Of a warp: groups of wgmma that it has committed, those up to which a warp of its warpgroup has waited, where its
    // last wgmma is, and whether that is in no group yet and whether it has ever fenced.
    struct Products {
        u32 committed = 0, finished = 0, last = 0;
        bool open = false, fenced = false;
    };
    struct WarpClock {
        u32 now;
        u32 floor;                    // every lane knows all lanes up to here
        std::vector<u32> knows;       // per warp
        std::vector<u32> lane_knows;  // lane x lane, beyond the floor; empty until lanes synchronise in part
    };

    bool ordered(const Mark& earlier, const Mark& now) const;
    u32 tracked(const CheckedAccess& access, Mark now) const;
    void read(const CheckedAccess& access, Cell& cell, const Mark& now);
    void write(const CheckedAccess& access, Cell& cell, const Mark& now, u64 at);
    bool same_value(const CheckedAccess& access, const Mark& earlier, const Mark& now, u64 at) const;
    void race(const char* kind, const char* what, const Mark& earlier, const Mark& now);
    void uninitialized(const CheckedAccess& access, int lane, const char* kind, const char* space);
    void order_lanes(WarpClock& clock, u32 lanes, u32 live);
    void order_by_atomics(u32 warp);
    void remember_reader(Cell& cell, const Mark& now);
    void unfenced(const Mark& write, const Mark& now);
    bool still_read(const Cell& cell) const;
    void overtaken(const CheckedAccess& access, const Mark& now, u64 begin, u64 end);
    // The copy engine has a clock, too, behind those of the warps.
    u32 engine() const { return static_cast<u32>(clocks_.size()) - 1; }
    void add(Tool tool, const char* kind, u32 thread, u32 at, u32 other, const std::string& message);
    u32 index_of(const Instruction& instruction) const;
    std::string name_of(u32 thread) const;
    std::string line_of(u32 at) const;

    const Launch& launch_;
    LaunchChecks& launch_checks_;
    Findings findings_;
    u64 block_ = 0;
    u32 start_ = 1;  // clock at which the block began; earlier marks belong to blocks before it
    u32 request_ = 0;
    std::vector<Cell> cells_;
    std::vector<WarpClock> clocks_;
    std::vector<Products> products_;
    std::vector<u32> fences_;  // per thread: the request before its last proxy fence
    std::vector<u32> at_barrier_[kBarriers + 1], by_atomics_;  // the last is that of the cluster
};

}  // namespace ptxemu
