// Which blocks of a launch are executed, and by which worker.
#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "checks.hpp"
#include "scheduler.hpp"

namespace kbemu {
namespace {

constexpr u64 kLeastSms = 2;  // of a sample: blocks may differ

// All blocks at once, in turns.
void work_together(Worker& worker) {
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

// A few blocks at once, in turns; the next one begins when one is done.
void work_in_turns(Worker& worker, unsigned index, unsigned workers) {
    const Launch& launch = *worker.launch;
    const u64 blocks = launch.blocks();
    u64 next = 0;
    const auto begin = [&](BlockRunner& runner) {
        while (next < blocks && next % launch.sm_count % workers != index) ++next;
        if (next == blocks) return false;
        runner.begin(next++);
        return true;
    };
    std::vector<std::unique_ptr<BlockRunner>> running;
    for (u32 k = 0; k < Turns::kBlocksAtOnce; ++k) {
        auto runner = std::make_unique<BlockRunner>(launch, worker);
        if (begin(*runner)) running.push_back(std::move(runner));
    }
    while (!running.empty()) {
        const auto one = running.begin() + worker.turns.below(static_cast<u32>(running.size()));
        if ((*one)->step()) continue;
        if (worker.failed()) return;
        if (!begin(**one)) running.erase(one);
    }
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
    if (launch.together) return work_together(worker);
    if (worker.turns.shuffled()) return work_in_turns(worker, index, workers);
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
    sms.resize(std::min<u64>(sms.size(), std::max<u64>(kLeastSms, room)));
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

Execution execute(const Launch& launch, unsigned threads) {
    const u64 useful = std::min<u64>({threads, launch.blocks(), launch.sm_count});
    const bool alone = launch.function->order_dependent || launch.together;
    const unsigned workers = alone ? 1u : static_cast<unsigned>(std::max<u64>(1, useful));
    const Function& function = *launch.function;
    std::vector<Worker> all(workers);
    for (Worker& worker : all) {
        worker.launch = &launch;
        worker.turns = Turns(launch.schedule, static_cast<u64>(&worker - all.data()));
        worker.counters.resize(launch.counted ? function.code.size() : 0, function.memory.size() + 1);
        worker.segment_hint.assign(function.memory.size() + 1, 0);
    }
    Execution done;
    done.blocks = launch.blocks();
    if (launch.sample != 0 && !launch.together)
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
