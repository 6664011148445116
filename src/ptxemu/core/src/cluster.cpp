// Blocks that are under way side by side: a cluster and its barrier. A block without a cluster is one of its own.
#include "checks.hpp"
#include "scheduler.hpp"

namespace ptxemu {
namespace {

const Instruction& first_waiting(const Block& block) {
    const Function& function = *block.warps.front().worker->launch->function;
    for (const Warp& warp : block.warps)
        if (warp.waiting != 0) return function.code[warp.pc[first_lane(warp.waiting)] - 1];
    return function.code[function.entry];
}

// Lets the lanes that have arrived pass the barrier, now or when they come to wait for it.
void pass(Warp& warp) {
    const u32 lanes = warp.cluster_arrived;
    u32 held = 0;
    for_each_lane(warp.waiting & lanes, [&](int l) { held |= u32{warp.barrier_of[l] == kOfCluster} << l; });
    if (BlockChecks* checks = warp.block->checks.get(); checks != nullptr && lanes != 0)
        checks->release(warp, kOfCluster, lanes);
    warp.waiting &= ~held;
    warp.cluster_passed |= lanes & ~held;
    warp.cluster_arrived = 0;
}

}  // namespace

ClusterRunner::ClusterRunner(const Launch& launch, Worker& worker) : worker_(worker) {
    for (u32 rank = 0; rank < launch.cluster_blocks(); ++rank) {
        blocks_.push_back(std::make_unique<BlockRunner>(launch, worker));
        cluster_.blocks.push_back(&blocks_.back()->block());
        blocks_.back()->block().cluster = &cluster_;
    }
}

void ClusterRunner::run(u64 number) {
    begin(number);
    while (step()) {
    }
}

void ClusterRunner::begin(u64 number) {
    for (u32 rank = 0; rank < blocks_.size(); ++rank) blocks_[rank]->begin(number, rank);
}

bool ClusterRunner::step() {
    const std::size_t count = blocks_.size();
    const std::size_t first = count > 1 && worker_.turns.shuffled() ? worker_.turns.below(static_cast<u32>(count)) : 0;
    Block *waiting = nullptr, *looking = nullptr;
    bool moved = false;
    for (std::size_t k = 0; k < count; ++k) {
        BlockRunner& runner = *blocks_[(first + k) % count];
        if (runner.block().gone) continue;
        const Turn turn = runner.step();
        if (worker_.failed()) return false;
        if (turn != Turn::done) waiting = &runner.block();
        if (turn == Turn::starved) looking = &runner.block();
        moved |= turn == Turn::moved || turn == Turn::done;
    }
    if (waiting == nullptr) return false;
    if (open_barrier() || moved || looking != nullptr) {
        if (!starving(looking != nullptr && !moved)) return true;
        fail_starved(*looking);
        return false;
    }
    if (waiting->checks) waiting->checks->deadlock(*waiting);
    worker_.fail(Fault::deadlock, first_waiting(*waiting), "some threads wait at a barrier that the others never reach");
    return false;
}

// Whether the cluster has done nothing but look at mbarriers for long. Blocks that run beside others may wait for them.
bool ClusterRunner::starving(bool looked_only) {
    constexpr u64 kPatience = 20000;
    const bool idle = looked_only && changes_ == worker_.mbarrier_changes && !worker_.launch->together;
    looks_ = idle ? looks_ + 1 : 0;
    changes_ = worker_.mbarrier_changes;
    return looks_ > kPatience;
}

void ClusterRunner::fail_alone(Block& block) {
    const Block::ClosedBarrier& closed = block.closed;
    const std::string message = "a warp waits for a wgmma that other warps of its warpgroup never come to";
    if (block.checks) block.checks->starved(closed.thread, *closed.at, message);
    worker_.fail(Fault::deadlock, *closed.at, message);
}

void ClusterRunner::fail_starved(Block& block) {
    const Block::ClosedBarrier& closed = block.closed;
    if (closed.offset == Block::kNoBarrier) return fail_alone(block);
    const std::string message = "threads wait for a phase of the mbarrier at shared " + hexadecimal(closed.offset) +
                                " that never ends: " + awaited(block.shared.data() + closed.offset);
    if (block.checks) block.checks->starved(closed.thread, *closed.at, message);
    worker_.fail(Fault::deadlock, *closed.at, message);
}

// Opens the cluster's barrier when all threads that are left have arrived; tells whether it was.
bool ClusterRunner::open_barrier() {
    bool some = false;
    for (const Block* block : cluster_.blocks)
        for (const Warp& warp : block->warps) {
            if ((warp.live & ~warp.cluster_arrived) != 0) return false;
            some |= warp.cluster_arrived != 0;
        }
    if (!some) return false;
    for (Block* block : cluster_.blocks) {
        for (Warp& warp : block->warps) pass(warp);
        if (block->checks) block->checks->reopen(kOfCluster);
    }
    return true;
}

}  // namespace ptxemu
