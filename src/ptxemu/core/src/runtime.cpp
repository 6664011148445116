#include "runtime.hpp"

#include "host_clock.hpp"
#include "host_faults.hpp"
#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace ptxemu {
namespace {

constexpr double kLaunchOverheadMs = 0.002;
constexpr double kIssuePerClock = 4.0;

cudaError_t error_of(Fault fault) {
    switch (fault) {
        case Fault::none: return cudaSuccess;
        case Fault::illegal_address: return cudaErrorIllegalAddress;
        case Fault::misaligned_address: return cudaErrorMisalignedAddress;
        case Fault::illegal_instruction: return cudaErrorIllegalInstruction;
        case Fault::assertion: return cudaErrorAssert;
        case Fault::deadlock: return cudaErrorLaunchTimeout;
        case Fault::trap: return cudaErrorLaunchFailure;
        case Fault::unsampled: return cudaErrorNotSupported;
    }
    return cudaErrorUnknown;
}

}  // namespace

bool Runtime::counting() const {
    return profiling || settings.count_everything;
}

Runtime& Runtime::instance() {
    // Never destroyed: unregistration at exit runs after static destructors.
    static Runtime* const runtime = new Runtime;
    return *runtime;
}

Runtime::Runtime()
    : settings(Settings::get()),
      figures(DeviceFigures::from_environment()),
      arena(figures.memory_bytes, settings.checking()),
      crew_(settings.threads) {
    if (settings.checking())
        initialized = std::make_unique<InitializedBytes>(kDeviceBase, arena.capacity());
    if (settings.leaks && settings.checking()) leaks.watch();
    if (settings.refused) refused_calls.watch();
    load_program();
    watch_host_code();
    if (settings.refused) tell_when_stopped();
}

cudaError_t Runtime::fail(cudaError_t error) {
    if (error != cudaSuccess) last_ = error;
    return error;
}

cudaError_t Runtime::refuse(cudaError_t error, const std::string& what, const std::string& reason) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    refused_calls.note(what + " was refused with " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error) + ": " + reason);
    return fail(error);
}

cudaError_t Runtime::fail_for_good(cudaError_t error, const std::string& message) {
    std::fprintf(stderr, "ptxcudart: %s\n", message.c_str());
    sticky_ = error;
    return fail(error);
}

cudaError_t Runtime::lacks(const std::string& what) {
    std::fprintf(stderr, "ptxcudart: %s is not emulated\n", what.c_str());
    report_missing(what);
    return fail(cudaErrorNotSupported);
}

cudaError_t Runtime::fail_unsampled(const std::string& reason) {
    report_unsampled(reason);
    return fail_for_good(cudaErrorNotSupported, reason);
}

cudaError_t Runtime::peek_last() {
    refused_.clear();
    refused_calls.forget();
    return sticky_ != cudaSuccess ? sticky_ : last_;
}

void Runtime::note_refused(const void* host, cudaError_t error) {
    static const bool told_at_end = std::atexit([] { runtime().tell_unseen(); }) == 0;
    const KernelEntry* entry = kernel(host);
    if (!told_at_end || !refused_.empty() || entry == nullptr) return;
    refused_ = "the launch of " + readable(entry->name) + " was refused with " + cudaGetErrorName(error) + ", " +
               cudaGetErrorString(error) + ", and the program has not asked for the error";
}

void Runtime::tell_unseen() const {
    if (refused_.empty()) return;
    std::fprintf(stderr, "ptxcudart: %s\n", refused_.c_str());
    report_fault(refused_);
}

cudaError_t Runtime::take_last() {
    const cudaError_t error = peek_last();
    last_ = cudaSuccess;
    return error;
}

void Runtime::register_kernel(const Module* module, const void* host, const std::string& name) {
    const Function* function = module != nullptr ? module->find(name) : nullptr;
    kernels_[host] = {name, module, function, static_cast<u32>(figures.shared_per_block)};
}

Variable* Runtime::register_variable(Module* module, const void* host, const std::string& name) {
    Variable* const variable = module != nullptr ? module->find_variable(name) : nullptr;
    if (variable != nullptr) variables_[host] = variable;
    return variable;
}

KernelEntry* Runtime::kernel(const void* host) {
    const auto found = kernels_.find(host);
    return found == kernels_.end() ? nullptr : &found->second;
}

Variable* Runtime::variable(const void* host) {
    const auto found = variables_.find(host);
    return found == variables_.end() ? nullptr : found->second;
}

cudaError_t Runtime::check(const KernelEntry& entry, dim3 grid, dim3 block, size_t dynamic_shared) {
    const Function& function = *entry.function;
    const u64 threads = u64{block.x} * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) return cudaErrorInvalidConfiguration;
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
    if (block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024) return cudaErrorInvalidConfiguration;
    if (function.max_threads != 0 && threads > function.max_threads) return cudaErrorInvalidValue;
    const u32* required = function.required_block;
    if (required[0] != 0 && (block.x != required[0] || block.y != required[1] || block.z != required[2]))
        return cudaErrorInvalidValue;
    if (dynamic_shared > entry.max_dynamic_shared) return cudaErrorInvalidValue;
    const u64 limit = entry.more_shared ? figures.shared_per_block_optin : figures.shared_per_block;
    return function.static_shared + dynamic_shared > limit ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t Runtime::check_cluster(const KernelEntry& entry, dim3 grid, dim3 cluster) {
    const u64 blocks = u64{cluster.x} * cluster.y * cluster.z;
    if (blocks == 1) return cudaSuccess;
    const u32* required = entry.function->required_cluster;
    const bool contradicts =
        required[0] != 0 && (cluster.x != required[0] || cluster.y != required[1] || cluster.z != required[2]);
    const u32 most = most_cluster_blocks(figures, entry), longest = std::max({cluster.x, cluster.y, cluster.z});
    if (blocks == 0 || longest > most || blocks > most || contradicts) return cudaErrorInvalidClusterSize;
    const bool whole = grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
    return whole ? cudaSuccess : cudaErrorInvalidClusterSize;
}

void Runtime::advance(u64 instructions, u64 blocks) {
    const double sms = static_cast<double>(std::min<u64>(blocks, figures.sm_count));
    const double clocks = static_cast<double>(instructions) / (sms * kIssuePerClock);
    clock_ms += kLaunchOverheadMs + clocks / static_cast<double>(figures.clock_khz);
}

namespace {

// The memory in which blocks of a cooperative launch count arrivals; zero at the start.
class Workspace {
public:
    Workspace(Arena& arena, bool wanted) : arena_(arena), address_(wanted ? arena.allocate(kBytes) : 0) {
        if (address_ != 0) std::memset(bytes_at(address_), 0, kBytes);
    }
    ~Workspace() {
        if (address_ != 0) arena_.free(address_);
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    u64 address() const { return address_; }

private:
    static constexpr u64 kBytes = 256;
    Arena& arena_;
    u64 address_;
};

}  // namespace

cudaError_t Runtime::prepare(const void* host, dim3 grid, dim3 block, void** arguments, size_t dynamic_shared,
                             bool cooperative, dim3 cluster, PreparedLaunch& prepared) {
    const HostClock::Pause pause;
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    if (sticky_ != cudaSuccess) return sticky_;
    const KernelEntry* entry = kernel(host);
    if (entry == nullptr || entry->function == nullptr) {
        std::fprintf(stderr, "ptxcudart: the module has no kernel %s\n", entry ? entry->name.c_str() : "(unregistered)");
        return fail(cudaErrorInvalidDeviceFunction);
    }
    if (const cudaError_t error = check(*entry, grid, block, dynamic_shared)) return fail(error);
    const Function& function = *entry->function;
    const u32* required = function.required_cluster;
    if (cluster.x == 0) cluster = required[0] != 0 ? dim3{required[0], required[1], required[2]} : dim3{1, 1, 1};
    if (const cudaError_t error = check_cluster(*entry, grid, cluster)) return fail(error);
    prepared = {entry->module, &function, grid, block, cluster, static_cast<u32>(dynamic_shared), cooperative, {}};
    prepared.parameters.resize(function.parameter_bytes);
    for (std::size_t k = 0; k < function.parameters.size(); ++k)
        std::memcpy(prepared.parameters.data() + function.parameters[k].offset, arguments[k], function.parameters[k].size);
    return cudaSuccess;
}

void Runtime::note_incomplete(const Launch& launch, bool sampled) {
    const GranuleMap& granules = *launch.granules;
    const std::vector<Segment>& list = launch.segments->list;
    for (std::size_t k = 0; k < list.size() && !sampled; ++k)
        sampled = !launch.incomplete.empty() && launch.incomplete[k] != 0 &&
                  granules.read_bytes(list[k].begin, list[k].end) != 0;
    if (!sampled) return;
    const Function::Reach& reach = launch.function->reach;
    for (const Segment& one : list)
        if (reach.anywhere || granules.written_bytes(one.begin, one.end) != 0) arena.set_incomplete(one.begin, true);
    for (const u32 offset : reach.parameters) {
        u64 pointer = 0;
        if (offset + sizeof pointer > launch.parameters.size()) continue;
        std::memcpy(&pointer, launch.parameters.data() + offset, sizeof pointer);
        arena.set_incomplete(pointer, true);
    }
    for (const u32 variable : reach.variables) arena.set_incomplete(launch.module->variables[variable].address, true);
}

bool Runtime::place_heap() {
    if (!heap.placed()) heap.place(arena.allocate(heap.bytes()));
    return heap.placed();
}

cudaError_t Runtime::launch(const PreparedLaunch& prepared) {
    const HostClock::Pause pause;
    contents.begun();
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    if (sticky_ != cudaSuccess) return sticky_;
    const Function& function = *prepared.function;
    const dim3 grid = prepared.grid, block = prepared.block;
    const u64 shared = function.static_shared + prepared.dynamic_shared;
    const u64 threads = u64{block.x} * block.y * block.z;
    const u64 fitting = resident_blocks(figures, threads, shared, function.registers);
    if (fitting == 0) return fail(cudaErrorLaunchOutOfResources);
    const bool held = u64{grid.x} * grid.y * grid.z <= fitting * figures.sm_count;
    if (prepared.cooperative && !held)
        return fail(cudaErrorCooperativeLaunchTooLarge);
    if (function.uses_heap && !place_heap()) return fail(cudaErrorMemoryAllocation);
    // How much of the L1 becomes shared memory is decided without a look at registers.
    const u64 resident = resident_blocks(figures, threads, shared, 0);
    const Workspace workspace(arena, prepared.cooperative);
    const u64 carved = resident * (shared ? shared + 1024 : 0);
    Segments segments = arena.segments();
    std::vector<u8> incomplete = arena.incomplete();
    host_memory.merge_into(segments, incomplete);
    GranuleMap granules(arena.device_range(), arena.managed_range());
    Launch launch{};
    launch.module = prepared.module;
    launch.function = &function;
    const dim3 cluster = prepared.cluster;
    const u32 grid_extents[] = {grid.x, grid.y, grid.z}, block_extents[] = {block.x, block.y, block.z};
    const u32 cluster_extents[] = {cluster.x, cluster.y, cluster.z};
    std::copy_n(grid_extents, 3, launch.grid);
    std::copy_n(block_extents, 3, launch.block);
    std::copy_n(cluster_extents, 3, launch.cluster);
    launch.dynamic_shared = prepared.dynamic_shared;
    launch.parameters = prepared.parameters;
    launch.segments = &segments;
    launch.number = ++launched_;
    launch.sm_count = static_cast<u32>(figures.sm_count);
    launch.l1_bytes = static_cast<u32>(figures.l1_bytes - std::min(carved, figures.l1_bytes - 16384));
    const u64 together = std::min(fitting, (launch.blocks() + figures.sm_count - 1) / figures.sm_count);
    launch.warps_per_sm = static_cast<u32>(together * ((threads + kLanes - 1) / kLanes));
    // What a sampled launch leaves out is only known when it is counted.
    const u64 enough = settings.sample;
    launch.counted = counting() || enough != 0;
    // Blocks that draw work from a common counter share it out only if all of them are there.
    const bool sharing = launch.counted && function.order_dependent && function.communicates;
    launch.together = prepared.cooperative || (held && sharing);
    launch.workspace = workspace.address();
    launch.instruction_limit = settings.instruction_limit;
    launch.granules = &granules;
    launch.heap = &heap;
    launch.textures = &textures;
    std::unique_ptr<LaunchChecks> checks;
    if (initialized) checks = std::make_unique<LaunchChecks>(*prepared.module, function, *initialized, arena.freed());
    launch.checks = checks.get();
    launch.sample = function.communicates ? 0 : enough;
    launch.incomplete = std::move(incomplete);
    launch.schedule = launch.counted || initialized ? 0 : settings.schedule;
    // Whoever looks at what other blocks do relies on those before it, and sums of floats depend on their order.
    const bool apart = !function.communicates && !function.order_dependent;
    launch.window = apart ? fitting * figures.sm_count / launch.cluster_blocks() : 0;
    Execution done = execute(launch, crew_, settings.threads);
    return conclude(launch, done);
}

cudaError_t Runtime::conclude(const Launch& launch, Execution& done) {
    if (launch.checks != nullptr) report_findings(launch);
    if (done.fault.fault == Fault::unsampled || (done.fault.fault != Fault::none && !launch.incomplete.empty()))
        return fail_unsampled(done.fault.message);
    if (done.fault.fault != Fault::none) {
        report_fault(done.fault.message);
        return fail_for_good(error_of(done.fault.fault), done.fault.message);
    }
    if (settings.sample != 0) note_incomplete(launch, done.blocks < launch.blocks());
    const Share share{launch.blocks(), done.blocks};
    advance(share.scaled(done.instructions), launch.blocks());
    done.counters.scale(share);
    if (counting()) report_launch(launch, done.counters, share);
    return cudaSuccess;
}

}  // namespace ptxemu
