// Which blocks of a launch are executed, and by which worker.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "checks.hpp"
#include "progress.hpp"
#include "scheduler.hpp"
#include "settings.hpp"

namespace ptxemu {
namespace {

constexpr u64 kLeastGroups = 2;  // of SMs, of a sample: blocks may differ
// What a worker does after the first access that is left out: what it reads there may send it round for ever.
constexpr u64 kMostLeftOut = 10000, kInstructionsAfter = 20'000'000;

// All clusters at once, in turns.
void work_together(Worker& worker) {
    const Launch& launch = *worker.launch;
    std::vector<std::unique_ptr<ClusterRunner>> running;
    for (u64 cluster = 0; cluster < launch.clusters(); ++cluster) {
        running.push_back(std::make_unique<ClusterRunner>(launch, worker));
        running.back()->begin(cluster);
    }
    while (!running.empty() && !worker.failed())
        running.erase(std::remove_if(running.begin(), running.end(), [](auto& one) { return !one->step(); }),
                      running.end());
}

// In which order clusters begin: one by one from the first, or, of those that the GPU holds at once, one of each of
// several parts in turns, from the last. Then neighbours in time are far apart in the grid; into how many parts it falls
// differs from launch to launch, for work is split into two slices, or three, or five.
class Beginnings {
public:
    explicit Beginnings(const Launch& launch)
        : clusters_(launch.clusters()), window_(launch.window), parts_(kParts[launch.number % std::size(kParts)]) {}

    // The next one; `clusters` when there is none.
    u64 next() {
        if (window_ == 0) return first_ == clusters_ ? clusters_ : first_++;
        while (first_ < clusters_) {
            const u64 held = std::min(window_, clusters_ - first_);
            const u64 length = (held + parts_ - 1) / parts_;
            for (; turn_ < parts_ * length; ++turn_) {
                const u64 place = turn_ % parts_ * length + turn_ / parts_;
                if (place >= held) continue;
                ++turn_;
                return first_ + held - 1 - place;
            }
            first_ += held;
            turn_ = 0;
        }
        return clusters_;
    }

private:
    static constexpr u64 kParts[] = {6, 4, 3, 5, 2};  // the first launch has the second of these

    u64 clusters_, window_, parts_;
    u64 first_ = 0;  // of those that are left, or of the window
    u64 turn_ = 0;   // within the window
};

// A few clusters at once, in turns; the next one begins when one is done.
void work_in_turns(Worker& worker, unsigned index, unsigned workers) {
    const Launch& launch = *worker.launch;
    const u64 clusters = launch.clusters();
    Beginnings beginnings(launch);
    const auto begin = [&](ClusterRunner& runner) {
        u64 next = beginnings.next();
        while (next < clusters && next % launch.sm_groups() % workers != index) next = beginnings.next();
        if (next == clusters) return false;
        runner.begin(next);
        return true;
    };
    std::vector<std::unique_ptr<ClusterRunner>> running;
    for (u32 k = 0; k < Turns::kBlocksAtOnce; ++k) {
        auto runner = std::make_unique<ClusterRunner>(launch, worker);
        if (begin(*runner)) running.push_back(std::move(runner));
    }
    while (!running.empty()) {
        const auto one = running.begin() + worker.turns.below(static_cast<u32>(running.size()));
        if ((*one)->step()) continue;
        if (worker.failed()) return;
        if (!begin(**one)) running.erase(one);
    }
}

void prepare_caches(Worker& worker, u32 group) {
    const Launch& launch = *worker.launch;
    if (!launch.counted) return;
    worker.caches.resize(launch.sm_count);
    for (u32 k = 0; k < launch.cluster_blocks(); ++k)
        worker.caches[group * launch.cluster_blocks() + k].configure(launch.l1_bytes, launch.warps_per_sm);
}

void work(Worker& worker, unsigned index, unsigned workers) {
    const Launch& launch = *worker.launch;
    const u64 clusters = launch.clusters();
    const u32 groups = launch.sm_groups();
    for (u32 group = index; group < groups && group < clusters; group += workers) prepare_caches(worker, group);
    if (launch.together) return work_together(worker);
    if (worker.turns.shuffled()) return work_in_turns(worker, index, workers);
    ClusterRunner runner(launch, worker);
    for (u64 cluster = 0; cluster < clusters; ++cluster) {
        if (cluster % groups % workers != index) continue;
        runner.run(cluster);
        if (worker.failed()) return;
    }
}

// All clusters of some groups of SMs, one group after the other.
void work_on(Worker& worker, const std::vector<u32>& groups) {
    const Launch& launch = *worker.launch;
    ClusterRunner runner(launch, worker);
    for (const u32 group : groups) {
        prepare_caches(worker, group);
        for (u64 cluster = group; cluster < launch.clusters(); cluster += launch.sm_groups()) {
            runner.run(cluster);
            if (worker.failed()) return;
        }
    }
}

template <class Work>
void work_in_parallel(Crew& crew, std::vector<Worker>& all, Work work) {
    crew.run(static_cast<unsigned>(all.size()), [&](unsigned k) { work(all[k], k); });
}

// The groups of SMs that have clusters, each far from those before it. A seed decides which comes first and how far the
// next one is: a program that knew them could give these less to do.
std::vector<u32> spread_groups(const Launch& launch) {
    const u32 count = static_cast<u32>(std::min<u64>(launch.sm_groups(), launch.clusters()));
    const u64 seed = Settings::get().sample_seed;
    u32 step = std::max(1u, static_cast<u32>(count * 0.618)) + static_cast<u32>(seed / count % (count / 8 + 1));
    while (std::gcd(step, count) != 1) ++step;
    std::vector<u32> order(count);
    for (u32 k = 0; k < count; ++k) order[k] = static_cast<u32>((seed + u64{k} * step) % count);
    return order;
}

// Runs what the sample has room for; returns the number of blocks.
u64 work_on_sample(Crew& crew, std::vector<Worker>& all) {
    const Launch& launch = *all[0].launch;
    std::vector<u32> groups = spread_groups(launch);
    work_on(all[0], {groups[0]});
    const u64 room = launch.sample / std::max<u64>(1, all[0].instructions);
    groups.resize(std::min<u64>(groups.size(), std::max<u64>(kLeastGroups, room)));
    std::vector<std::vector<u32>> shares(all.size());
    for (std::size_t k = 1; k < groups.size(); ++k) shares[k % shares.size()].push_back(groups[k]);
    if (!all[0].failed()) work_in_parallel(crew, all, [&](Worker& worker, unsigned k) { work_on(worker, shares[k]); });
    u64 clusters = 0;
    for (const u32 group : groups) clusters += (launch.clusters() - group + launch.sm_groups() - 1) / launch.sm_groups();
    return clusters * launch.cluster_blocks();
}

}  // namespace

std::size_t Segments::find(u64 address) const {
    const auto next = std::upper_bound(list.begin(), list.end(), address,
                                       [](u64 value, const Segment& segment) { return value < segment.begin; });
    if (next == list.begin()) return list.size();
    const auto found = next - 1;
    return address < found->end ? static_cast<std::size_t>(found - list.begin()) : list.size();
}

std::string readable(const std::string& symbol) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && name ? name.get() : symbol;
}

namespace {

FaultReport told(const Launch& launch, Fault kind, const Instruction& at, const std::string& message) {
    const SourcePosition& source = launch.module->sources.at(at.source);
    const std::string place = source.line != 0 ? " (" + source.file + ":" + std::to_string(source.line) + ")"
                                               : " (PTX line " + std::to_string(at.ptx_line) + ")";
    return {kind, "kernel " + readable(launch.function->name) + ": " + message + place};
}

}  // namespace

void Worker::fail(Fault kind, const Instruction& at, const std::string& message) {
    if (!failed()) fault = told(*launch, kind, at, message);
}

void Worker::survive(Fault kind, const Instruction& at, const std::string& message) {
    if (left_out++ == 0) {
        survived = told(*launch, kind, at, message);
        gives_up_at = instructions + kInstructionsAfter;
    }
    if (left_out > kMostLeftOut) fail(kind, at, message);
}

Execution execute(const Launch& launch, Crew& crew, unsigned threads) {
    const u64 useful = std::min<u64>({threads, launch.clusters(), launch.sm_groups()});
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
    const Executing now(launch, all);
    Execution done;
    done.blocks = launch.blocks();
    if (launch.sample != 0 && !launch.together)
        done.blocks = work_on_sample(crew, all);
    else
        work_in_parallel(crew, all, [&](Worker& worker, unsigned k) { work(worker, k, workers); });
    done.counters.resize(launch.counted ? function.code.size() : 0, function.memory.size() + 1);
    for (const Worker& worker : all) {
        done.counters.add(worker.counters);
        done.instructions += worker.instructions;
        const FaultReport& first = worker.left_out != 0 ? worker.survived : worker.fault;
        if (done.fault.fault == Fault::none) done.fault = first;
    }
    return done;
}

}  // namespace ptxemu
