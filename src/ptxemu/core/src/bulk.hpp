// One-dimensional bulk copies between global and shared memory: what the copy engine of an SM still has to do.
//
// A copy is executed as late as the program allows: one into shared memory when somebody tests the mbarrier that it
// completes on, which lies in the same block of the cluster, one out of shared memory when its thread waits for its group. Until then its destination holds what it
// held before, and its source may still be changed, so that a missing wait shows in the values.
#pragma once

#include <vector>

#include "types.hpp"

namespace ptxemu {

struct Block;
struct Worker;

struct BulkCopy {
    bool to_shared;
    u64 global;
    u32 shared, bytes;
    u32 barrier;  // into shared memory: offset of its mbarrier
    u32 thread;   // that has issued it
    u32 group;    // out of shared memory: its group among those of its thread, counted from 1; 0 before it is committed
    u32 at;       // instruction, index into Function::code
};

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

// Takes bytes off the transaction count of the mbarrier at an address, and opens its phase when nothing is left.
void complete_transactions(u8* barrier, u32 bytes);

}  // namespace ptxemu
