// Bulk copies between global and shared memory: what the copy engine of an SM still has to do.
//
// A copy is executed as late as the program allows: one into shared memory when somebody tests the mbarrier that it
// completes on, which lies in the same block of the cluster, one out of shared memory when its thread waits for its group.
// Until then its destination holds what it held before, and its source may still be changed, so that a missing wait shows
// in the values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor_map.hpp"

namespace ptxemu {

struct Block;
struct Worker;

enum class BulkReduction : u8 { none, add, min, max, inc, dec, and_, or_, xor_ };

struct BulkCopy {
    bool to_shared;
    bool inside;  // into shared memory, from that of a block of the cluster: `global` is its place on the host
    u64 global;
    u32 shared, bytes;
    u32 barrier;  // into shared memory: offset of its mbarrier
    u32 thread;   // that has issued it
    u32 group;    // out of shared memory: its group among those of its thread, counted from 1; 0 before it is committed
    u32 at;       // instruction, index into Function::code
    BulkReduction reduction;
    ElementType type;                      // of what is reduced
    std::shared_ptr<const TensorBox> box;  // null: contiguous

    // Bytes of shared memory from `shared` on.
    u32 extent() const { return box ? box->map.shared_bytes() : bytes; }
    // Moves the bytes; `memory` is the block's shared memory.
    void execute(u8* memory) const;
    // Visits contiguous pieces of global memory: visit(address, bytes).
    template <class Visit>
    void each_global(Visit visit) const {
        if (!box) return visit(global, u64{bytes});
        box->each_row([&](u32, u64 row, u32 first, u32 end) {
            if (first < end) visit(row + first, u64{end} - first);
        });
    }

private:
    void move(u8* near, u8* far, u32 count) const;
};

// Whether the copy engine combines elements of this type in global memory so (PTX ISA, cp.reduce.async.bulk); ptxas sees
// that of plain copies, the types of tensor maps only the GPU knows.
bool combines(BulkReduction reduction, ElementType type);

// to[k] = to[k] op from[k], for all elements of `bytes`; of a combination that there is.
void reduce(BulkReduction reduction, ElementType type, u8* to, const u8* from, u32 bytes);

class BulkCopies {
public:
    void clear();
    bool empty() const { return pending_.empty(); }
    void add(const BulkCopy& copy) { pending_.push_back(copy); }
    // Executes the copies that complete on a barrier, and counts their bytes there.
    void complete(Block& block, u32 barrier);
    // Closes a group of a thread's copies.
    void commit(u32 thread);
    // Executes the groups of a thread, but for the last so many.
    void wait(Block& block, u32 thread, u32 left);
    // Executes what nobody has waited for: the block is done.
    void finish(Block& block);
    // A copy that is under way and disturbed by an access to [begin, end) of shared memory; null when none is.
    const BulkCopy* disturbed(u64 begin, u64 end, bool writes) const;

private:
    template <class Choose>
    void execute(Block& block, Choose choose);

    std::vector<BulkCopy> pending_;
    std::vector<u32> groups_;  // per thread: how many it has closed
};

// What a phase of the mbarrier at an address still waits for, in words.
std::string awaited(const u8* barrier);

// Takes bytes off the transaction count of the mbarrier at an address, and opens its phase when nothing is left.
void complete_transactions(u8* barrier, u32 bytes);

}  // namespace ptxemu
