#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "calls.hpp"
#include "checks.hpp"
#include "machine.hpp"

namespace kbemu {
namespace {

// A warp gives way after this many instructions, so that another can release it from a spin loop.
constexpr u64 kWarpQuota = 1u << 20;
// A diverged group gives way after this many, so that lanes of its own warp can.
constexpr u64 kGroupQuota = 1u << 17;
constexpr u64 kRotatedQuota = 1u << 12;
// Blocks of a cooperative launch wait for each other in loops: they take short turns.
constexpr u64 kCooperativeQuota = 1u << 9;
constexpr u32 kNever = ~0u;

// bar.red: how Instruction::extra says what to combine.
enum class Reduction : u32 { none, count, all, any };

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
        return worker_.failed() ? stop() : advance();
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

// Runs a warp until its lanes wait, are gone, or its quota is used.
template <bool Counted>
void run_warp(Warp& warp) {
    const bool cooperative = warp.worker->launch->cooperative;
    const u64 stop = warp.worker->instructions + (cooperative ? kCooperativeQuota : kWarpQuota);
    const u64 quota = cooperative ? kCooperativeQuota : kGroupQuota;
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
        Group<Counted>(warp, chosen, others, forced).run(quota);
        const bool gave_way = warp.worker->instructions - before >= quota || warp.yields;
        if (!gave_way || others == 0) continue;
        const u32 rest = warp.live & ~warp.waiting & ~warp.parked;
        if (rest == 0) continue;
        const u32 rotated = lanes_at(warp, rest, highest_pc(warp, rest));
        warp.yields = false;
        Group<Counted>(warp, rotated, rest & ~rotated, false).run_rotated();
    }
}

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

const Instruction& first_waiting(const Block& block) {
    const Function& function = *block.warps.front().worker->launch->function;
    for (const Warp& warp : block.warps)
        if (warp.waiting != 0) return function.code[warp.pc[first_lane(warp.waiting)] - 1];
    return function.code[function.entry];
}

// One turn of every warp; false when the block is done or has failed.
template <bool Counted>
bool run_round(Block& block, Worker& worker) {
    const u64 before = worker.instructions;
    for (Warp& warp : block.warps) {
        const u64 own = worker.instructions;
        run_warp<Counted>(warp);
        warp.executed += worker.instructions - own;
        if (worker.instructions > worker.launch->instruction_limit)
            worker.fail(Fault::deadlock, worker.launch->function->code[worker.launch->function->entry],
                        "more than " + std::to_string(worker.launch->instruction_limit) + " warp instructions");
        if (worker.failed()) return false;
    }
    if (!any_live(block)) {
        for (const Warp& warp : block.warps)
            worker.counters.longest_warp = std::max(worker.counters.longest_warp, warp.executed);
        return false;
    }
    if (!release_barriers(block) && worker.instructions == before) {
        if (block.checks) block.checks->deadlock(block);
        worker.fail(Fault::deadlock, first_waiting(block), "some threads wait at a barrier that the others never reach");
        return false;
    }
    return true;
}

// A worker's block: registers, local and shared memory are allocated once and reused for every block it runs.
class BlockRunner {
public:
    BlockRunner(const Launch& launch, Worker& worker) : launch_(launch), worker_(worker) {
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

    void run(u64 number) {
        begin(number);
        while (step()) {
        }
    }

    bool step() { return launch_.counted ? run_round<true>(block_, worker_) : run_round<false>(block_, worker_); }

    void begin(u64 number) {
        block_.position[0] = static_cast<u32>(number % launch_.grid[0]);
        block_.position[1] = static_cast<u32>(number / launch_.grid[0] % launch_.grid[1]);
        block_.position[2] = static_cast<u32>(number / launch_.grid[0] / launch_.grid[1]);
        block_.sm = static_cast<u32>(number % launch_.sm_count);
        block_.l1 = launch_.counted ? &worker_.caches[block_.sm] : nullptr;
        std::fill(block_.shared.begin(), block_.shared.end(), u8{0xff});
        std::fill(std::begin(block_.barriers), std::end(block_.barriers), Barrier{});
        for (Warp& warp : block_.warps) restart(warp);
        if (block_.checks) block_.checks->start(number);
    }

private:
    u8* registers_of(u32 index) {
        const auto start = (reinterpret_cast<std::uintptr_t>(register_file_.data()) + 63) / 64 * 64;
        return reinterpret_cast<u8*>(start) + std::size_t{index} * register_stride_;
    }

    void prepare(u32 index) {
        Warp& warp = block_.warps[index];
        warp.registers = registers_of(index);
        warp.local = local_.data() + std::size_t{index} * kLanes * launch_.function->local_bytes;
        warp.block = &block_;
        warp.worker = &worker_;
        warp.index = index;
        for (const Constant& constant : launch_.function->constants) fill(warp, constant);
        for (const Special& special : launch_.function->specials) fill_special(warp, special);
    }

    static void fill(const Warp& warp, const Constant& constant) {
        for (int l = 0; l < kLanes; ++l) {
            if (constant.width == 64) warp.lanes<u64>(constant.offset)[l] = constant.value;
            if (constant.width == 32) warp.lanes<u32>(constant.offset)[l] = static_cast<u32>(constant.value);
            if (constant.width == 16) warp.lanes<u16>(constant.offset)[l] = static_cast<u16>(constant.value);
        }
    }

    void fill_special(const Warp& warp, const Special& special) const {
        u32* lanes = warp.lanes<u32>(special.offset);
        for (u32 l = 0; l < kLanes; ++l) lanes[l] = special_value(warp, special.name, l);
    }

    u32 special_value(const Warp& warp, const std::string& name, u32 lane) const {
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
        if (name == "nsmid") return launch_.sm_count;
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

    void restart(Warp& warp) {
        const u32 first = warp.index * kLanes, threads = launch_.threads_per_block();
        warp.live = threads - first >= kLanes ? kAllLanes : (1u << (threads - first)) - 1;
        warp.waiting = warp.parked = 0;
        warp.executed = 0;
        std::fill(std::begin(warp.pc), std::end(warp.pc), launch_.function->entry);
        warp.calls.clear();
        for (const Special& special : launch_.function->specials) {
            u32 value = 0;
            if (special.name == "ctaid.x")
                value = block_.position[0];
            else if (special.name == "ctaid.y")
                value = block_.position[1];
            else if (special.name == "ctaid.z")
                value = block_.position[2];
            else if (special.name == "smid")
                value = block_.sm;
            else
                continue;
            std::fill_n(warp.lanes<u32>(special.offset), kLanes, value);
        }
    }

    const Launch& launch_;
    Worker& worker_;
    Block block_;
    std::vector<u8> register_file_, local_;
    std::size_t register_stride_ = 0;
};

// All blocks at once, in turns.
void work_cooperatively(Worker& worker) {
    const Launch& launch = *worker.launch;
    std::vector<std::unique_ptr<BlockRunner>> running;
    for (u64 block = 0; block < launch.blocks(); ++block) {
        running.push_back(std::make_unique<BlockRunner>(launch, worker));
        running.back()->begin(block);
    }
    while (!running.empty() && !worker.failed())
        running.erase(std::remove_if(running.begin(), running.end(), [](auto& one) { return !one->step(); }),
                      running.end());
}

void prepare_cache(Worker& worker, u32 sm) {
    if (!worker.launch->counted) return;
    worker.caches.resize(worker.launch->sm_count);
    worker.caches[sm].configure(worker.launch->l1_bytes);
}

void work(Worker& worker, unsigned index, unsigned workers) {
    const Launch& launch = *worker.launch;
    const u64 blocks = launch.blocks();
    for (u32 sm = index; sm < launch.sm_count && sm < blocks; sm += workers) prepare_cache(worker, sm);
    if (launch.cooperative) return work_cooperatively(worker);
    BlockRunner runner(launch, worker);
    for (u64 block = 0; block < blocks; ++block) {
        if (block % launch.sm_count % workers != index) continue;
        runner.run(block);
        if (worker.failed()) return;
    }
}

// All blocks of some SMs, one SM after the other.
void work_on(Worker& worker, const std::vector<u32>& sms) {
    const Launch& launch = *worker.launch;
    BlockRunner runner(launch, worker);
    for (const u32 sm : sms) {
        prepare_cache(worker, sm);
        for (u64 block = sm; block < launch.blocks(); block += launch.sm_count) {
            runner.run(block);
            if (worker.failed()) return;
        }
    }
}

template <class Work>
void work_in_parallel(std::vector<Worker>& all, Work work) {
    std::vector<std::thread> helpers;
    for (unsigned k = 1; k < all.size(); ++k) helpers.emplace_back([&, k] { work(all[k], k); });
    work(all[0], 0);
    for (std::thread& helper : helpers) helper.join();
}

// The SMs that have blocks, each far from those before it.
std::vector<u32> spread_sms(const Launch& launch) {
    const u32 count = static_cast<u32>(std::min<u64>(launch.sm_count, launch.blocks()));
    u32 step = std::max(1u, static_cast<u32>(count * 0.618));
    while (std::gcd(step, count) != 1) ++step;
    std::vector<u32> order(count);
    for (u32 k = 0; k < count; ++k) order[k] = static_cast<u32>(u64{k} * step % count);
    return order;
}

// Runs what the sample has room for; returns the number of blocks.
u64 work_on_sample(std::vector<Worker>& all) {
    const Launch& launch = *all[0].launch;
    std::vector<u32> sms = spread_sms(launch);
    work_on(all[0], {sms[0]});
    const u64 room = launch.sample / std::max<u64>(1, all[0].instructions);
    sms.resize(std::max<u64>(1, std::min<u64>(sms.size(), room)));
    std::vector<std::vector<u32>> shares(all.size());
    for (std::size_t k = 1; k < sms.size(); ++k) shares[k % shares.size()].push_back(sms[k]);
    if (!all[0].failed()) work_in_parallel(all, [&](Worker& worker, unsigned k) { work_on(worker, shares[k]); });
    u64 blocks = 0;
    for (const u32 sm : sms) blocks += (launch.blocks() - sm + launch.sm_count - 1) / launch.sm_count;
    return blocks;
}

}  // namespace

std::size_t Segments::find(u64 address) const {
    const auto next = std::upper_bound(list.begin(), list.end(), address,
                                       [](u64 value, const Segment& segment) { return value < segment.begin; });
    if (next == list.begin()) return list.size();
    const auto found = next - 1;
    return address < found->end ? static_cast<std::size_t>(found - list.begin()) : list.size();
}

void Worker::fail(Fault kind, const Instruction& at, const std::string& message) {
    if (failed()) return;
    const SourcePosition& source = launch->module->sources.at(at.source);
    fault.fault = kind;
    fault.message = "kernel " + launch->function->name + ": " + message;
    fault.message += source.line != 0 ? " (" + source.file + ":" + std::to_string(source.line) + ")"
                                      : " (PTX line " + std::to_string(at.ptx_line) + ")";
}

Block::Block() = default;
Block::~Block() = default;

Execution execute(const Launch& launch, unsigned threads) {
    const u64 useful = std::min<u64>({threads, launch.blocks(), launch.sm_count});
    const bool alone = launch.function->order_dependent || launch.cooperative;
    const unsigned workers = alone ? 1u : static_cast<unsigned>(std::max<u64>(1, useful));
    const Function& function = *launch.function;
    std::vector<Worker> all(workers);
    for (Worker& worker : all) {
        worker.launch = &launch;
        worker.counters.resize(launch.counted ? function.code.size() : 0, function.memory.size() + 1);
        worker.segment_hint.assign(function.memory.size() + 1, 0);
    }
    Execution done;
    done.blocks = launch.blocks();
    if (launch.sample != 0 && !launch.cooperative)
        done.blocks = work_on_sample(all);
    else
        work_in_parallel(all, [&](Worker& worker, unsigned k) { work(worker, k, workers); });
    done.counters.resize(launch.counted ? function.code.size() : 0, function.memory.size() + 1);
    for (const Worker& worker : all) {
        done.counters.add(worker.counters);
        done.instructions += worker.instructions;
        if (worker.failed() && done.fault.fault == Fault::none) done.fault = worker.fault;
    }
    return done;
}

}  // namespace kbemu
