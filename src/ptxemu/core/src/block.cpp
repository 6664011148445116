// Blocks: their memory, their barriers, and the turns of their warps.
#include <algorithm>

#include "checks.hpp"
#include "scheduler.hpp"

namespace ptxemu {
namespace {

void deliver(Warp& warp, const Barrier& barrier, u32 lanes) {
    const Instruction* code = warp.worker->launch->function->code.data();
    for_each_lane(lanes, [&](int l) {
        const Instruction& instruction = code[warp.pc[l] - 1];
        u32* result = warp.lanes<u32>(instruction.operand[0]);
        switch (static_cast<Reduction>(instruction.extra)) {
            case Reduction::none: break;
            case Reduction::count: result[l] = barrier.reduced_count; break;
            case Reduction::all: result[l] = barrier.reduced_and; break;
            case Reduction::any: result[l] = barrier.reduced_or; break;
        }
    });
}

// Opens every barrier that is complete; tells whether one was.
bool release_barriers(Block& block) {
    BlockChecks* const checks = block.checks.get();
    u32 live = 0;
    for (const Warp& warp : block.warps) live += popcount(warp.live);
    bool released = false;
    for (u32 id = 0; id < kBarriers; ++id) {
        Barrier& barrier = block.barriers[id];
        const u32 expected = barrier.expected != 0 ? barrier.expected : live;
        if (barrier.arrived == 0 || barrier.arrived < expected) continue;
        for (Warp& warp : block.warps) {
            u32 lanes = 0;
            for_each_lane(warp.waiting, [&](int l) { lanes |= u32{warp.barrier_of[l] == id} << l; });
            deliver(warp, barrier, lanes);
            if (checks != nullptr && lanes != 0) checks->release(warp, id, lanes);
            warp.waiting &= ~lanes;
        }
        barrier = {};
        if (checks != nullptr) checks->reopen(id);
        released = true;
    }
    return released;
}

bool any_live(const Block& block) {
    return std::any_of(block.warps.begin(), block.warps.end(), [](const Warp& warp) { return warp.live != 0; });
}

// Most instructions of a turn that a warp needs to look at an mbarrier, several times where its lanes do so apart.
constexpr u64 kLook = 256;

// One turn of every warp.
Turn run_round(Block& block, Worker& worker) {
    const u64 before = worker.instructions;
    bool looked = false, worked = false;
    const std::size_t warps = block.warps.size();
    const std::size_t first = worker.turns.shuffled() ? worker.turns.below(static_cast<u32>(warps)) : 0;
    for (std::size_t turn = 0; turn < warps; ++turn) {
        Warp& warp = block.warps[(first + turn) % warps];
        const u64 own = worker.instructions;
        warp.starved = false;
        worker.running = &warp;
        run_warp(warp);
        const u64 used = worker.instructions - own;
        warp.executed += used;
        const bool only_looked = warp.starved && used < kLook;
        looked |= only_looked;
        worked |= used != 0 && !only_looked;
        if (worker.instructions > std::min(worker.launch->instruction_limit, worker.gives_up_at))
            worker.fail(Fault::deadlock, worker.launch->function->code[worker.launch->function->entry],
                        "more than " + std::to_string(worker.launch->instruction_limit) + " warp instructions");
        if (worker.failed()) return Turn::done;
    }
    if (!any_live(block)) {
        block.bulk.finish(block);
        if (block.checks) block.checks->unfinished_products();
        for (const Warp& warp : block.warps)
            worker.counters.longest_warp = std::max(worker.counters.longest_warp, warp.executed);
        block.gone = true;
        return Turn::done;
    }
    if (release_barriers(block) || worked) return Turn::moved;
    return looked ? Turn::starved : worker.instructions != before ? Turn::moved : Turn::stuck;
}

void fill(const Warp& warp, const Constant& constant) {
    for (int l = 0; l < kLanes; ++l) {
        if (constant.width == 64) warp.lanes<u64>(constant.offset)[l] = constant.value;
        if (constant.width == 32) warp.lanes<u32>(constant.offset)[l] = static_cast<u32>(constant.value);
        if (constant.width == 16) warp.lanes<u16>(constant.offset)[l] = static_cast<u16>(constant.value);
    }
}

}  // namespace

BlockRunner::BlockRunner(const Launch& launch, Worker& worker) : launch_(launch), worker_(worker) {
    const Function& function = *launch.function;
    const u32 warps = (launch.threads_per_block() + kLanes - 1) / kLanes;
    block_.shared_bytes = (function.static_shared + 15) / 16 * 16 + launch.dynamic_shared;
    block_.shared.resize(block_.shared_bytes + 16);
    register_stride_ = (function.register_bytes + 63) / 64 * 64;
    register_file_.resize(std::size_t{warps} * register_stride_ + 64);
    local_.assign(std::size_t{warps} * kLanes * function.local_bytes, 0xff);
    block_.warps.resize(warps);
    for (u32 w = 0; w < warps; ++w) prepare(w);
    if (launch.checks != nullptr)
        block_.checks = std::make_unique<BlockChecks>(launch, *launch.checks, warps, block_.shared_bytes);
}

Turn BlockRunner::step() { return run_round(block_, worker_); }

void BlockRunner::begin(u64 cluster, u32 rank) {
    const u32 *grid = launch_.grid, *extent = launch_.cluster;
    const u64 across = grid[0] / extent[0], down = grid[1] / extent[1];
    block_.position[0] = static_cast<u32>(cluster % across) * extent[0] + rank % extent[0];
    block_.position[1] = static_cast<u32>(cluster / across % down) * extent[1] + rank / extent[0] % extent[1];
    block_.position[2] = static_cast<u32>(cluster / across / down) * extent[2] + rank / extent[0] / extent[1];
    block_.sm = static_cast<u32>(cluster % launch_.sm_groups()) * launch_.cluster_blocks() + rank;
    block_.rank = rank;
    block_.gone = false;
    const u64 number = block_.position[0] + u64{grid[0]} * (block_.position[1] + u64{grid[1]} * block_.position[2]);
    block_.l1 = launch_.counted ? &worker_.caches[block_.sm] : nullptr;
    std::fill(block_.shared.begin(), block_.shared.end(), u8{0xff});
    block_.bulk.clear();
    block_.reads.clear();
    std::fill(std::begin(block_.barriers), std::end(block_.barriers), Barrier{});
    for (Warp& warp : block_.warps) restart(warp);
    if (block_.checks) block_.checks->start(number);
}

u8* BlockRunner::registers_of(u32 index) {
    const auto start = (reinterpret_cast<std::uintptr_t>(register_file_.data()) + 63) / 64 * 64;
    return reinterpret_cast<u8*>(start) + std::size_t{index} * register_stride_;
}

void BlockRunner::prepare(u32 index) {
    Warp& warp = block_.warps[index];
    warp.registers = registers_of(index);
    warp.local = local_.data() + std::size_t{index} * kLanes * launch_.function->local_bytes;
    warp.block = &block_;
    warp.worker = &worker_;
    warp.index = index;
    for (const Constant& constant : launch_.function->constants) fill(warp, constant);
    for (const Special& special : launch_.function->specials) {
        u32* lanes = warp.lanes<u32>(special.offset);
        for (u32 l = 0; l < kLanes; ++l) lanes[l] = special_value(warp, special.name, l);
    }
}

u32 BlockRunner::special_value(const Warp& warp, const std::string& name, u32 lane) const {
    const u32 thread = warp.index * kLanes + lane;
    const u32 *block = launch_.block, *grid = launch_.grid;
    const u32 warps = static_cast<u32>(block_.warps.size());
    if (name == "tid.x") return thread % block[0];
    if (name == "tid.y") return thread / block[0] % block[1];
    if (name == "tid.z") return thread / block[0] / block[1];
    if (name == "ntid.x") return block[0];
    if (name == "ntid.y") return block[1];
    if (name == "ntid.z") return block[2];
    if (name == "nctaid.x") return grid[0];
    if (name == "nctaid.y") return grid[1];
    if (name == "nctaid.z") return grid[2];
    if (name == "laneid") return lane;
    if (name == "warpid") return warp.index;
    if (name == "nwarpid") return warps;
    if (name == "gridid") return launch_.number;
    if (name == "nsmid") return launch_.sm_count;
    if (name == "cluster_nctarank") return launch_.cluster_blocks();
    if (name == "is_explicit_cluster") return launch_.cluster_blocks() > 1;
    for (u32 axis = 0; axis < 3; ++axis) {
        const char which = "xyz"[axis];
        if (name == std::string("cluster_nctaid.") + which) return launch_.cluster[axis];
        if (name == std::string("nclusterid.") + which) return grid[axis] / launch_.cluster[axis];
    }
    if (name == "lanemask_eq") return 1u << lane;
    if (name == "lanemask_lt") return (1u << lane) - 1;
    if (name == "lanemask_le") return ((1u << lane) - 1) | 1u << lane;
    if (name == "lanemask_gt") return ~(((1u << lane) - 1) | 1u << lane);
    if (name == "lanemask_ge") return ~((1u << lane) - 1);
    if (name == "envreg1") return static_cast<u32>(launch_.workspace >> 32);
    if (name == "envreg2") return static_cast<u32>(launch_.workspace);
    if (name == "dynamic_smem_size") return launch_.dynamic_shared;
    if (name == "total_smem_size") return block_.shared_bytes;
    return 0;
}

void BlockRunner::restart(Warp& warp) {
    const u32 first = warp.index * kLanes, threads = launch_.threads_per_block();
    warp.live = threads - first >= kLanes ? kAllLanes : (1u << (threads - first)) - 1;
    warp.waiting = warp.parked = warp.cluster_arrived = warp.cluster_passed = 0;
    warp.executed = warp.held = 0;
    warp.retries = false;
    warp.products = 0;
    warp.block->closed.lacks_bytes = false;
    warp.committed.clear();
    std::fill(std::begin(warp.pc), std::end(warp.pc), launch_.function->entry);
    warp.calls.clear();
    for (const Special& special : launch_.function->specials)
        if (const std::optional<u32> value = own_value(special.name))
            std::fill_n(warp.lanes<u32>(special.offset), kLanes, *value);
}

// A special register that holds something else in each block.
std::optional<u32> BlockRunner::own_value(const std::string& name) const {
    if (name == "smid") return block_.sm;
    if (name == "cluster_ctarank") return block_.rank;
    for (u32 axis = 0; axis < 3; ++axis) {
        const char which = "xyz"[axis];
        const u32 position = block_.position[axis], extent = launch_.cluster[axis];
        if (name == std::string("ctaid.") + which) return position;
        if (name == std::string("clusterid.") + which) return position / extent;
        if (name == std::string("cluster_ctaid.") + which) return position % extent;
    }
    return std::nullopt;
}

Block::Block() = default;
Block::~Block() = default;

}  // namespace ptxemu
