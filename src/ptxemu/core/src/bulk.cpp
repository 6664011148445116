// cp.async.bulk without tensor maps.
//
// Not counted as loads or stores of the load/store unit: the copy engine works between L2 and shared memory. Sectors
// of the L2 and bytes of DRAM are counted where the copy is issued.
#include "bulk.hpp"

#include <algorithm>

#include "checks.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

constexpr u64 kAlignment = 16;  // of both addresses and of the size
constexpr u64 kCountedAtOnce = (kLanes - 1) * kLineBytes;  // touches at most as many lines as a LineSet holds

u32 shared_address(const Warp& warp, u32 operand, bool wide, int lane) {
    return wide ? static_cast<u32>(warp.lanes<u64>(operand)[lane]) : warp.lanes<u32>(operand)[lane];
}

void refuse(Warp& warp, const Instruction& instruction, int lane, Fault fault, const char* kind, const BulkCopy& copy,
            const std::string& what) {
    const std::string message = what + " bulk copy of " + std::to_string(copy.bytes) + " bytes between global " +
                                hexadecimal(copy.global) + " and shared " + hexadecimal(copy.shared);
    if (BlockChecks* checks = warp.block->checks.get()) checks->memory_fault(warp, instruction, lane, kind, message);
    warp.worker->fail(fault, instruction, message);
}

bool allowed(Warp& warp, const Instruction& instruction, int lane, const BulkCopy& copy, const Block* holder) {
    const auto no = [&](Fault fault, const char* kind, const char* what) {
        refuse(warp, instruction, lane, fault, kind, copy, what);
        return false;
    };
    if ((copy.global | copy.shared | copy.bytes) % kAlignment != 0 || copy.barrier % sizeof(u64) != 0)
        return no(Fault::misaligned_address, "misaligned", "misaligned");
    if (holder == nullptr || holder->gone)
        return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds cluster");
    const u64 size = holder->shared_bytes;
    if (copy.shared + u64{copy.bytes} > size || copy.barrier + sizeof(u64) > size)
        return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds shared");
    const Launch& launch = *warp.worker->launch;
    const std::size_t segment = launch.segments->find(copy.global);
    if (segment == launch.segments->list.size() || launch.segments->list[segment].end - copy.global < copy.bytes)
        return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds global");
    if (copy.to_shared && launch.misleads(instruction.memory, segment))
        return no(Fault::unsampled, "unsampled", "what a sampled launch has computed in part decides what is executed:");
    return true;
}

void count(Worker& worker, const BulkCopy& copy) {
    if (!worker.launch->counted) return;
    GranuleMap& granules = *worker.launch->granules;
    for (u64 at = 0; at < copy.bytes; at += kCountedAtOnce) {
        const LineSet set = lines_between(copy.global + at, std::min(kCountedAtOnce, copy.bytes - at));
        for (u32 k = 0; k < set.lines; ++k)
            copy.to_shared ? granules.read(set.line[k], set.sectors[k]) : granules.write(set.line[k], set.sectors[k]);
        (copy.to_shared ? worker.counters.l2_read_sectors : worker.counters.l2_write_sectors) += set.count;
    }
}

// operand[0]: shared address (its offset in [1]), [2]: bytes, [3]: address of the mbarrier (its offset in [5]),
// [4]: global address, with the immediate; extra: whether it goes into shared memory.
void issue(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const bool wide = (instruction.flags & kHasResult) != 0, wide_barrier = (instruction.flags & kWideAddress) != 0;
    for_each_lane(active, [&](int lane) {
        if (warp.worker->failed()) return;
        BulkCopy copy{};
        copy.to_shared = instruction.extra != 0;
        copy.global = warp.lanes<u64>(instruction.operand[4])[lane] + static_cast<u64>(instruction.immediate);
        copy.shared = shared_address(warp, instruction.operand[0], wide, lane) + instruction.operand[1];
        copy.bytes = warp.lanes<u32>(instruction.operand[2])[lane];
        if (copy.to_shared)
            copy.barrier = shared_address(warp, instruction.operand[3], wide_barrier, lane) + instruction.operand[5];
        copy.thread = warp.index * kLanes + static_cast<u32>(lane);
        copy.at = static_cast<u32>(&instruction - warp.worker->launch->function->code.data());
        Block* const holder = warp.block->holder(copy.shared);
        if (copy.to_shared && warp.block->holder(copy.barrier) == holder) {
            copy.shared &= (1u << kRankShift) - 1;
            copy.barrier &= (1u << kRankShift) - 1;
        }
        if (copy.bytes == 0 || !allowed(warp, instruction, lane, copy, holder)) return;
        count(*warp.worker, copy);
        if (BlockChecks* checks = warp.block->checks.get(); checks != nullptr && holder == warp.block)
            checks->issued(warp, instruction, copy);
        holder->bulk.add(copy);
    });
}

void commit(Warp& warp, const Instruction&, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) { warp.block->bulk.commit(warp.index * kLanes + static_cast<u32>(lane)); });
}

void wait(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32 left = static_cast<u32>(instruction.immediate);
    for_each_lane(active, [&](int lane) {
        warp.block->bulk.wait(*warp.block, warp.index * kLanes + static_cast<u32>(lane), left);
    });
}

}  // namespace

void BulkCopies::clear() {
    pending_.clear();
    groups_.clear();
}

template <class Choose>
void BulkCopies::execute(Block& block, Choose choose) {
    const auto moved = [&](const BulkCopy& copy) {
        if (!choose(copy)) return false;
        u8* const global = reinterpret_cast<u8*>(copy.global);
        u8* const shared = block.shared.data() + copy.shared;
        if (copy.to_shared) {
            std::memcpy(shared, global, copy.bytes);
            complete_transactions(block.shared.data() + copy.barrier, copy.bytes);
        } else {
            std::memcpy(global, shared, copy.bytes);
        }
        if (block.checks) block.checks->moved(copy);
        return true;
    };
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), moved), pending_.end());
}

void BulkCopies::complete(Block& block, u32 barrier) {
    execute(block, [&](const BulkCopy& copy) { return copy.to_shared && copy.barrier == barrier; });
}

void BulkCopies::commit(u32 thread) {
    if (groups_.size() <= thread) groups_.resize(thread + 1);
    const u32 group = ++groups_[thread];
    for (BulkCopy& copy : pending_)
        if (!copy.to_shared && copy.thread == thread && copy.group == 0) copy.group = group;
}

void BulkCopies::wait(Block& block, u32 thread, u32 left) {
    const u32 closed = thread < groups_.size() ? groups_[thread] : 0;
    execute(block, [&](const BulkCopy& copy) {
        return !copy.to_shared && copy.thread == thread && copy.group != 0 && copy.group + left <= closed;
    });
}

void BulkCopies::finish(Block& block) {
    if (block.checks)
        for (const BulkCopy& copy : pending_) block.checks->unfinished(copy);
    execute(block, [](const BulkCopy&) { return true; });
    groups_.clear();
}

const BulkCopy* BulkCopies::disturbed(u64 begin, u64 end, bool writes) const {
    for (const BulkCopy& copy : pending_)
        if (begin < copy.shared + u64{copy.bytes} && copy.shared < end && (writes || copy.to_shared)) return &copy;
    return nullptr;
}

const std::vector<Operation>& bulk_operations() {
    static const std::vector<Operation> table = {
        {"bulk_copy", Kind::memory, issue},
        {"bulk_commit", Kind::memory, commit},
        {"bulk_wait", Kind::memory, wait},
    };
    return table;
}

}  // namespace ptxemu
