// State of the stand-in CUDA runtime: one device, one context, everything synchronous.
//
// A launch executes before cudaLaunchKernel returns; streams and events exist and order nothing. Time is virtual: a
// launch advances the clock by a fixed overhead plus its warp instructions over the issue rate of the SMs it uses, a
// copy or memset by its bytes over a nominal bandwidth. The timing model outside this library does not use that
// clock; it is there so that programs which measure themselves see plausible, deterministic, non-zero times.
//
// Errors of the device are sticky, as on a GPU: after a fault every call reports it.
//
// Environment: PTXEMU_MODULE (assembled module, or a list of them), PTXEMU_REPORT (JSON lines, one per counted launch), PTXEMU_COUNT=1
// (count every launch, else between cudaProfilerStart and cudaProfilerStop), PTXEMU_CHECKS (JSON lines, one per finding
// of the checks, which run only when it is set), PTXEMU_LEAKS=1 (memory that is never freed is
// a finding), PTXEMU_REFUSED=1 (calls that were refused and overlooked are told), PTXEMU_HOST_FUNCTIONS=0 (host functions in
// streams and graphs fail), PTXEMU_MOST_REPORTED (bytes), PTXEMU_THREADS, PTXEMU_DEVICE ("key value" lines that replace figures
// of the device), PTXEMU_MEMORY (bytes of device memory), PTXEMU_LIMIT (warp instructions per launch and host thread,
// after which it fails as timed out), PTXEMU_SAMPLE and PTXEMU_SAMPLE_SEED (warp instructions per launch, beyond which the blocks of whole SMs are
// left out and counts are scaled).
//
// Samples. Launches whose blocks may wait for each other are never sampled. What a sampled launch has written is
// incomplete, and so is what is computed or copied from it; a launch that would be steered by such data, and a program
// that reads it back while it is profiled, fail with a reason in the report: their counts would be wrong.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "checks.hpp"
#include "device_contents.hpp"
#include "device_memory.hpp"
#include "heap.hpp"
#include "leaks.hpp"
#include "machine.hpp"
#include "refused_calls.hpp"
#include "settings.hpp"

namespace ptxemu {

struct DeviceFigures {
    std::string name = "NVIDIA H200 (emulated)";
    u64 major = 9, minor = 0;
    u64 sm_count = 132;
    u64 clock_khz = 1980000;
    u64 l2_bytes = 60ull << 20;
    u64 l1_bytes = 256ull << 10;  // L1 and shared memory together
    u64 shared_per_block = 48ull << 10;
    u64 shared_per_block_optin = 227ull << 10;
    u64 shared_per_sm = 228ull << 10;
    u64 registers_per_sm = 65536;
    u64 threads_per_sm = 2048;
    u64 blocks_per_sm = 32;
    u64 memory_bytes = 16ull << 30;

    struct Attribute {
        std::string name;
        std::optional<int> value;  // none where no source tells it
    };
    std::map<int, Attribute> attributes;  // by number; those that follow from the above have no value

    // The defaults with the entries of the file at PTXEMU_DEVICE.
    static DeviceFigures from_environment();
};

// Device memory: one reservation at a fixed address, so that addresses, and with them cache sets, repeat. The host cannot
// reach it (device_memory.hpp), but for what is managed.
class Arena {
public:
    // With checks, allocations lie further apart, and what was freed is not allocated again while there is room.
    Arena(u64 bytes, bool checked);
    // 0 when full. Fresh memory holds 0xff bytes, NaN in every float format, and takes none of the machine's before it is
    // written.
    u64 allocate(u64 bytes, bool managed = false);
    bool free(u64 address);
    // Within one allocation.
    void fill(u64 address, u64 bytes, u8 value) const;
    // The allocation that begins there or is the nearest before.
    std::optional<Segment> before(u64 address) const;
    // Whether [address, address + bytes) lies in one allocation.
    bool holds(u64 address, u64 bytes) const;
    bool owns(u64 address) const { return address - kDeviceBase < capacity_ || managed(address); }
    // Whether it is an address of managed memory, allocated or not.
    bool managed(u64 address) const { return address - kManagedBase < capacity_; }
    u64 free_bytes() const;
    // Which addresses all that is not managed has ever had, and all that is.
    Segment device_range() const { return device_.used(); }
    Segment managed_range() const { return managed_.used(); }
    u64 capacity() const { return capacity_; }
    const std::vector<Segment>& freed() const { return freed_; }
    Segments segments() const;
    // A sampled launch leaves out parts of what it writes; what holds such an allocation is not to be trusted.
    void set_incomplete(u64 address, bool incomplete);
    bool incomplete(u64 address) const;
    bool is_all_of(u64 address, u64 bytes) const;
    // Per segment; empty when all are complete.
    std::vector<u8> incomplete() const;

private:
    struct Allocation {
        u64 bytes, size;  // as asked for, and as it takes
    };
    // Addresses of one kind of memory. Managed memory has whole pages.
    struct Window {
        u64 base, unit, high_water = 0;
        Segment used() const { return {base, base + high_water}; }
    };
    u64 first_fit(const Window& window, u64 size) const;

    Window device_{kDeviceBase, 512}, managed_{kManagedBase, 4096};
    u64 capacity_, used_ = 0, gap_;
    bool checked_;
    int pattern_;
    std::vector<Segment> freed_;
    std::map<u64, Allocation> allocations_;  // by address
    std::set<u64> incomplete_;               // addresses of allocations
};

// Memory of the host that kernels may use at its own address: pinned or registered. What they do there goes over the
// bus: it is no traffic of the device's memory, and all of it counts as initialised.
class HostMemory {
public:
    void add(u64 address, u64 bytes) { ranges_[address] = bytes; }
    bool remove(u64 address) { return ranges_.erase(address) != 0; }
    bool holds(u64 address, u64 bytes) const;
    bool empty() const { return ranges_.empty(); }
    const std::map<u64, u64>& ranges() const { return ranges_; }
    // The segments with these among them, and the flags of those that are incomplete, which these never are.
    void merge_into(Segments& segments, std::vector<u8>& incomplete) const;

private:
    std::map<u64, u64> ranges_;  // address -> bytes
};

struct KernelEntry {
    std::string name;
    const Module* module = nullptr;
    const Function* function = nullptr;
    u32 max_dynamic_shared = 0;
    bool large_clusters = false;  // of more than eight blocks
    bool more_shared = false;     // than a block gets that has not asked
};

struct PreparedLaunch {
    const Module* module;
    const Function* function;
    dim3 grid, block, cluster;
    u32 dynamic_shared;
    bool cooperative;
    std::vector<u8> parameters;
};

class Runtime {
public:
    static Runtime& instance();

    const Settings& settings;
    const DeviceFigures figures;
    Arena arena;
    HostMemory host_memory;
    DeviceHeap heap;
    Textures textures;
    Leaks leaks;
    RefusedCalls refused_calls;
    DeviceContents contents;
    std::recursive_mutex mutex;
    std::unique_ptr<InitializedBytes> initialized;  // null when nothing is checked
    bool profiling = false;
    // Whether what happens now belongs into the report.
    bool counting() const;
    double clock_ms = 0;

    cudaError_t fail(cudaError_t error);
    // The same for `what`, a call that a program may overlook to have failed, and why it did.
    cudaError_t refuse(cudaError_t error, const std::string& what, const std::string& reason);
    // Sticky.
    cudaError_t fail_for_good(cudaError_t error, const std::string& message);
    // The program asks for what a GPU has and this runtime lacks; told to the user, whatever the program makes of it.
    cudaError_t lacks(const std::string& what);
    cudaError_t sticky() const { return sticky_; }
    cudaError_t take_last();
    cudaError_t peek_last();
    // A launch that <<<>>> asked for did not take place. What the program has not asked about when it ends is reported.
    void note_refused(const void* host, cudaError_t error);

    // Modules beside the program's own, from files as PTXEMU_MODULE names one. Throws std::runtime_error.
    Module& load(const std::string& path);
    // Frees the variables; false when there is no such module. What is known of its kernels stays, for launches to come
    // in graphs.
    bool unload(const Module* module);
    Module* loaded(const void* module);
    // What stands for a kernel of a module where the address of a host stub does for others; null when there is none.
    const void* handle_of(const Module& module, const std::string& kernel);

    // The module of the file whose host code registers this machine code; null where the program has none.
    Module* registered(const void* fat_binary);
    void register_kernel(const Module* module, const void* host, const std::string& name);
    // Null when the module has no such variable.
    Variable* register_variable(Module* module, const void* host, const std::string& name);
    KernelEntry* kernel(const void* host);
    Variable* variable(const void* host);

    // Checks a launch and copies its arguments; it may run later, and more than once. `cluster`: none where it is {0}.
    cudaError_t prepare(const void* host, dim3 grid, dim3 block, void** arguments, size_t dynamic_shared,
                        bool cooperative, dim3 cluster, PreparedLaunch& prepared);
    cudaError_t launch(const PreparedLaunch& prepared);
    // Ends a sampled run: what was left out would decide what is executed. Sticky.
    cudaError_t fail_unsampled(const std::string& reason);

private:
    Runtime();
    void load_program();
    void place(Module& module);
    bool place_heap();
    cudaError_t check(const KernelEntry& entry, dim3 grid, dim3 block, size_t dynamic_shared);
    cudaError_t check_cluster(const KernelEntry& entry, dim3 grid, dim3 cluster);
    void advance(u64 instructions, u64 blocks);
    // Marks what a launch has written, when its blocks were sampled or read what is incomplete.
    void note_incomplete(const Launch& launch, bool sampled);
    // What a launch leaves behind: findings, its fault, the clock and its record.
    cudaError_t conclude(const Launch& launch, Execution& done);

    Crew crew_;
    struct OwnModule {
        u32 digest;
        std::unique_ptr<Module> module;
    };
    std::vector<OwnModule> program_;
    std::vector<std::unique_ptr<Module>> loaded_, unloaded_;
    std::unordered_map<const void*, KernelEntry> kernels_;
    std::unordered_map<const void*, Variable*> variables_;
    // What calls returned, and the program may have overlooked; told when it ends.
    void tell_unseen() const;

    u32 launched_ = 0;
    cudaError_t last_ = cudaSuccess, sticky_ = cudaSuccess;
    std::string refused_;  // the first launch whose refusal nobody has seen
};

inline Runtime& runtime() { return Runtime::instance(); }

// A kernel's name as its source has it, where it is one of C++.
std::string readable(const std::string& symbol);

// Appends the launch's record to the file PTXEMU_REPORT names.
void report_launch(const Launch& launch, const Counters& counters, const Share& share);

// Appends a copy or fill: `kind` is device_to_device, host_to_device, device_to_host or fill.
void report_transfer(const char* kind, u64 bytes);

// Appends what the host has worked between profiler marks beyond what is free; nothing where it has not.
void report_host_work(u64 nanoseconds);

// Appends why a sample of blocks cannot stand for all.
void report_unsampled(const std::string& reason);

// Appends the fault that ended a kernel.
void report_fault(const std::string& message);

// Appends what host code did that kills it, and where in the program that was.
void report_host_fault(const std::string& message, const std::vector<u64>& callers);

// Appends what a kernel was doing when the program was stopped, empty where none was executed, and where the program was.
void report_running(const std::string& message, const std::vector<u64>& callers);

// Appends a call that was refused: why, how often, and where it came from.
void report_refused(const std::string& message, u64 count, const std::vector<u64>& callers);

// Appends what the program has asked for in vain.
void report_missing(const std::string& what);

// Appends what the checks found in a launch to the file PTXEMU_CHECKS names.
void report_findings(const Launch& launch);

// Blocks that a kernel may have in a cluster: eight, or sixteen when asked for; one where the GPU knows no clusters.
u32 most_cluster_blocks(const DeviceFigures& figures, const KernelEntry& kernel);

// Warps of an SM that hold so many registers a thread; all there is room for when that is unknown (0).
u64 resident_warps(const DeviceFigures& figures, u64 registers);

// Blocks that one SM holds at once: the rules of the CUDA occupancy calculator, as in devices/occupancy.py.
u64 resident_blocks(const DeviceFigures& figures, u64 threads, u64 shared_bytes, u64 registers);

}  // namespace ptxemu
