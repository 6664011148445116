// The asynchronous proxy under the checks: what bulk copies and wgmma read of shared memory.
//
// Between what threads have written and what the proxy reads there must be a proxy fence, of the thread that has written
// or of the one that issues the reading; that both are ordered is what races.cpp looks for.
#include <algorithm>

#include "checks.hpp"

namespace ptxemu {

void BlockChecks::fenced(const Warp& warp, u32 lanes) {
    for_each_lane(lanes, [&](int lane) { fences_[warp.index * kLanes + static_cast<u32>(lane)] = request_; });
}

void BlockChecks::unfenced(const Mark& write, const Mark& now) {
    const bool by_thread = write.clock >= start_ && !write.outside && write.thread / kLanes != engine();
    if (!by_thread || fences_[write.thread] >= write.request || fences_[now.thread] >= write.request) return;
    if (findings_.again(Tool::racecheck, "missing_proxy_fence", now.at, write.at, block_)) return;
    add(Tool::racecheck, "missing_proxy_fence", now.thread, now.at, write.at,
        "the asynchronous proxy reads what was written by " + name_of(write.thread) + " at " + line_of(write.at) +
            ", and no fence.proxy.async is between the two");
}

void BlockChecks::multiplies(const Warp& warp, const Instruction& at) {
    Products& own = products_[warp.index];
    own.open = true;
    own.last = index_of(at);
    if (own.fenced || findings_.again(Tool::synccheck, "missing_wgmma_fence", index_of(at), kNoInstruction, block_)) return;
    add(Tool::synccheck, "missing_wgmma_fence", warp.index * kLanes, index_of(at), kNoInstruction,
        "the first wgmma of a warp without a wgmma.fence before it");
}

void BlockChecks::operand(const Warp& warp, const Instruction& instruction, u64 begin, u32 bytes) {
    Mark now;
    now.clock = clocks_[warp.index].now;
    now.at = index_of(instruction);
    now.request = ++request_;
    now.thread = static_cast<u16>(warp.index * kLanes);
    u64 address[kLanes] = {begin};
    const CheckedAccess access{warp, instruction, address, 1, bytes, Op::load, nullptr};
    overtaken(access, now, begin, begin + bytes);
    const u32 granule = launch_checks_.granule;
    for (u64 at = begin; at < begin + bytes; at += granule) {
        Cell& cell = cells_[at / granule];
        unfenced(cell.write, now);
        read(access, cell, now);
        cell.product = now;
        cell.product.request = products_[warp.index].committed + 1;
    }
}

// All warps of the warpgroup have read what the groups up to here need.
void BlockChecks::waited(const Warp& warp, u32 left) {
    constexpr u32 kWarpsOfGroup = 4;
    const u32 committed = products_[warp.index].committed, done = committed - std::min(committed, left);
    WarpClock& clock = clocks_[warp.index];
    const u32 first = warp.index / kWarpsOfGroup * kWarpsOfGroup;
    for (u32 w = first; w < first + kWarpsOfGroup && w < products_.size(); ++w) {
        products_[w].finished = std::max(products_[w].finished, done);
        if (w == warp.index) continue;
        clock.knows[w] = std::max(clock.knows[w], clocks_[w].now);
        ++clocks_[w].now;
    }
}

// The block ends: registers of a wgmma that nobody has waited for are not those of the product.
void BlockChecks::unfinished_products() {
    for (u32 w = 0; w < products_.size(); ++w) {
        const Products& own = products_[w];
        if (!own.open && own.finished >= own.committed) continue;
        if (findings_.again(Tool::synccheck, "unfinished_product", own.last, kNoInstruction, block_)) continue;
        add(Tool::synccheck, "unfinished_product", w * kLanes, own.last, kNoInstruction,
            own.open ? "the block ends, and no wgmma.commit_group has put this wgmma into a group that can be waited for"
                     : "the block ends, and nobody has waited for this wgmma");
    }
}

bool BlockChecks::still_read(const Cell& cell) const {
    const Mark& product = cell.product;
    return product.clock >= start_ && product.request > products_[product.thread / kLanes].finished;
}

void BlockChecks::starved(u32 thread, const Instruction& at, const std::string& message) {
    add(Tool::synccheck, "barrier_deadlock", thread, index_of(at), kNoInstruction, message);
}

}  // namespace ptxemu
