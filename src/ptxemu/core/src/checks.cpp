// Findings, global memory and synchronisation; what concerns shared memory is in races.cpp.
#include "checks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace ptxemu {
namespace {

constexpr u64 kBytesPerWord = 64;

// Visits the words of the shadow that stand for a range, each with the bits that lie in it.
template <class Visit>
void each_word(u64 offset, u64 bytes, Visit visit) {
    const u64 end = offset + bytes;
    for (u64 at = offset; at < end;) {
        const u64 bit = at % kBytesPerWord, count = std::min(kBytesPerWord - bit, end - at);
        visit(at / kBytesPerWord, (count == kBytesPerWord ? ~u64{0} : (u64{1} << count) - 1) << bit);
        at += count;
    }
}

bool is_collective(const std::string& instruction_class) {
    return instruction_class == "shfl" || instruction_class == "vote" || instruction_class == "bar";
}

}  // namespace

void Findings::add(const Finding& finding) {
    const auto [found, fresh] =
        found_.try_emplace(key(finding.tool, finding.kind, finding.at, finding.other), finding);
    if (fresh) return;
    const u64 count = found->second.count + finding.count;
    if (finding.block < found->second.block) found->second = finding;
    found->second.count = count;
}

void Findings::merge(const Findings& other) {
    for (const auto& [key, finding] : other.found_) add(finding);
}

bool Findings::again(Tool tool, const char* kind, u32 at, u32 other, u64 block) {
    const auto found = found_.find(key(tool, kind, at, other));
    if (found == found_.end() || found->second.block > block) return false;
    ++found->second.count;
    return true;
}

std::vector<Finding> Findings::sorted() const {
    std::vector<Finding> result;
    for (const auto& [key, finding] : found_) result.push_back(finding);
    return result;
}

InitializedBytes::InitializedBytes(u64 base, u64 bytes) : base_(base), bytes_(bytes) {
    const u64 size = (bytes / kBytesPerWord + 1) * sizeof(u64);
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        std::fprintf(stderr, "ptxcudart: no address space for the checks of %llu bytes\n",
                     static_cast<unsigned long long>(bytes));
        std::abort();
    }
    words_ = static_cast<u64*>(memory);
}

void InitializedBytes::mark(u64 address, u64 bytes) {
    if (address - base_ >= bytes_) return;
    each_word(address - base_, bytes, [&](u64 word, u64 bits) {
        if (~__atomic_load_n(&words_[word], __ATOMIC_RELAXED) & bits)
            __atomic_fetch_or(&words_[word], bits, __ATOMIC_RELAXED);
    });
}

void InitializedBytes::clear(u64 address, u64 bytes) {
    if (address - base_ >= bytes_) return;
    each_word(address - base_, bytes,
              [&](u64 word, u64 bits) { __atomic_fetch_and(&words_[word], ~bits, __ATOMIC_RELAXED); });
}

bool InitializedBytes::covers(u64 address, u64 bytes) const {
    if (address - base_ >= bytes_) return true;
    u64 missing = 0;
    each_word(address - base_, bytes,
              [&](u64 word, u64 bits) { missing |= ~__atomic_load_n(&words_[word], __ATOMIC_RELAXED) & bits; });
    return missing == 0;
}

void InitializedBytes::copy(u64 to, u64 from, u64 bytes) {
    if (covers(from, bytes)) return mark(to, bytes);
    std::vector<bool> known(bytes);
    for (u64 k = 0; k < bytes; ++k) known[k] = covers(from + k, 1);
    for (u64 k = 0; k < bytes; ++k) known[k] ? mark(to + k, 1) : clear(to + k, 1);
}

LaunchChecks::LaunchChecks(const Module& module, const Function& function, InitializedBytes& bytes,
                           const std::vector<Segment>& freed_blocks)
    : initialized(bytes), freed(freed_blocks), granule(4), findings(places) {
    std::map<u32, u32> first;
    for (u32 k = 0; k < function.code.size(); ++k)
        places.push_back(function.code[k].source == 0 ? k : first.try_emplace(function.code[k].source, k).first->second);
    for (const std::string& name : module.class_names) collective.push_back(is_collective(name));
    for (const MemoryInstruction& one : function.memory)
        if (one.space == "shared" || one.space == "generic")
            granule = std::min(granule, one.bytes_per_lane % 4 == 0 ? 4u : one.bytes_per_lane % 2 == 0 ? 2u : 1u);
}

BlockChecks::BlockChecks(const Launch& launch, LaunchChecks& shared, u32 warps, u32 shared_bytes)
    : launch_(launch),
      launch_checks_(shared),
      findings_(shared.places),
      cells_(shared_bytes / shared.granule + 1),
      clocks_(warps + 1),
      products_(warps),
      fences_((warps + 1) * kLanes) {
    for (WarpClock& clock : clocks_) clock.now = 0;
}

BlockChecks::~BlockChecks() {
    const std::lock_guard<std::mutex> lock(launch_checks_.mutex);
    launch_checks_.findings.merge(findings_);
}

void BlockChecks::start(u64 block_number) {
    block_ = block_number;
    for (const WarpClock& clock : clocks_) start_ = std::max(start_, clock.now + 1);
    const std::vector<u32> nothing(clocks_.size(), start_ - 1);
    for (WarpClock& clock : clocks_) clock = {start_, start_ - 1, nothing, {}};
    for (auto& known : at_barrier_) known = nothing;
    by_atomics_ = nothing;
    std::fill(products_.begin(), products_.end(), Products{});
    std::fill(fences_.begin(), fences_.end(), 0);
}

u32 BlockChecks::index_of(const Instruction& instruction) const {
    return static_cast<u32>(&instruction - launch_.function->code.data());
}

std::string BlockChecks::name_of(u32 thread) const {
    if (thread / kLanes == engine()) return "a bulk copy";
    const u32 x = launch_.block[0], y = launch_.block[1];
    return "thread (" + std::to_string(thread % x) + ", " + std::to_string(thread / x % y) + ", " +
           std::to_string(thread / x / y) + ")";
}

std::string BlockChecks::line_of(u32 at) const {
    const Instruction& instruction = launch_.function->code[at];
    const SourcePosition& source = launch_.module->sources.at(instruction.source);
    return source.line != 0 ? "line " + std::to_string(source.line)
                            : "PTX line " + std::to_string(instruction.ptx_line);
}

void BlockChecks::add(Tool tool, const char* kind, u32 thread, u32 at, u32 other, const std::string& message) {
    findings_.add({tool, kind, message, at, other, block_, thread});
}

void BlockChecks::memory_fault(const Warp& warp, const Instruction& at, int lane, const char* kind,
                               std::string message) {
    add(Tool::memcheck, kind, warp.index * kLanes + static_cast<u32>(lane), index_of(at), kNoInstruction, message);
}

void BlockChecks::uninitialized(const CheckedAccess& access, int lane, const char* kind, const char* space) {
    const u32 at = index_of(access.instruction);
    if (findings_.again(Tool::initcheck, kind, at, kNoInstruction, block_)) return;
    add(Tool::initcheck, kind, access.warp.index * kLanes + static_cast<u32>(lane), at, kNoInstruction,
        std::string(access.op == Op::atomic ? "atomic on" : "read of") + " uninitialised " + space + " memory, " +
            std::to_string(access.bytes) + " bytes at " + hexadecimal(access.address[lane]));
}

void BlockChecks::global(const CheckedAccess& access, Pattern pattern) {
    InitializedBytes& initialized = launch_checks_.initialized;
    if (access.extent == nullptr && (pattern == Pattern::linear || pattern == Pattern::uniform)) {
        const u64 bytes = pattern == Pattern::linear ? u64{kLanes} * access.bytes : access.bytes;
        if (access.op == Op::store) return initialized.mark(access.address[0], bytes);
        if (initialized.covers(access.address[0], bytes)) return;
    }
    for_each_lane(access.active, [&](int lane) {
        const u32 bytes = access.extent != nullptr ? std::min(access.extent[lane], access.bytes) : access.bytes;
        if (access.op != Op::store && !initialized.covers(access.address[lane], bytes))
            uninitialized(access, lane, "uninitialized_global", "global");
        if (access.op != Op::load) initialized.mark(access.address[lane], bytes);
    });
}

void BlockChecks::order_lanes(WarpClock& clock, u32 lanes, u32 live) {
    if ((live & ~lanes) == 0) {
        clock.floor = clock.now;
    } else {
        if (clock.lane_knows.empty()) clock.lane_knows.assign(kLanes * kLanes, 0);
        for (int of = 0; of < kLanes; ++of) {
            u32 latest = 0;
            for_each_lane(lanes, [&](int lane) { latest = std::max(latest, clock.lane_knows[lane * kLanes + of]); });
            if (lanes >> of & 1) latest = clock.now;
            for_each_lane(lanes, [&](int lane) { clock.lane_knows[lane * kLanes + of] = latest; });
        }
    }
    ++clock.now;
}

void BlockChecks::arrive(const Warp& warp, u32 barrier, bool waits) {
    WarpClock& clock = clocks_[warp.index];
    std::vector<u32>& passed = at_barrier_[barrier];
    for (std::size_t v = 0; v < passed.size(); ++v) passed[v] = std::max(passed[v], clock.knows[v]);
    passed[warp.index] = clock.now;
    if (!waits) ++clock.now;
}

void BlockChecks::release(const Warp& warp, u32 barrier, u32 lanes) {
    WarpClock& clock = clocks_[warp.index];
    const std::vector<u32>& passed = at_barrier_[barrier];
    for (std::size_t v = 0; v < passed.size(); ++v) clock.knows[v] = std::max(clock.knows[v], passed[v]);
    order_lanes(clock, lanes, warp.live);
    // Lanes that have arrived at the cluster's barrier may be anywhere.
    if (barrier == kOfCluster) return;
    const u32 first = warp.pc[first_lane(lanes)] - 1;
    for_each_lane(lanes, [&](int lane) {
        const u32 other = warp.pc[lane] - 1;
        if (other == first || findings_.again(Tool::synccheck, "barrier_divergence", first, other, block_)) return;
        const u32 thread = warp.index * kLanes + static_cast<u32>(lane);
        add(Tool::synccheck, "barrier_divergence", thread, first, other,
            "lanes of one warp wait at different barriers, at " + line_of(first) + " and at " + line_of(other));
    });
}

void BlockChecks::reopen(u32 barrier) { std::fill(at_barrier_[barrier].begin(), at_barrier_[barrier].end(), 0); }

void BlockChecks::collective(const Warp& warp, const Instruction& at, u32 lanes, bool forced) {
    if (!launch_checks_.collective[at.instruction_class]) return;
    const u32* members = warp.lanes<u32>(at.operand[4]);
    const u32 place = index_of(at), first = warp.index * kLanes;
    u32 named = 0;
    for_each_lane(lanes, [&](int lane) {
        named |= members[lane];
        if (members[lane] >> lane & 1) return;
        add(Tool::synccheck, "member_mask", first + static_cast<u32>(lane), place, kNoInstruction,
            "a lane executes this although its member mask " + hexadecimal(members[lane]) + " leaves it out");
    });
    const u32 missing = named & warp.live & ~lanes;
    if (forced && missing != 0)
        add(Tool::synccheck, "missing_lanes", first + static_cast<u32>(first_lane(lanes)), place, kNoInstruction,
            "the member mask " + hexadecimal(named) + " names lanes that never come here: " + hexadecimal(missing));
    order_lanes(clocks_[warp.index], lanes, warp.live);
}

void BlockChecks::deadlock(const Block& block) {
    u32 at = kNoInstruction, other = kNoInstruction, thread = 0, waiting = 0, elsewhere = 0, exited = 0;
    for (const Warp& warp : block.warps) {
        const u32 first = warp.index * kLanes, threads = launch_.threads_per_block() - first;
        exited += std::min<u32>(threads, kLanes) - popcount(warp.live);
        for_each_lane(warp.live, [&](int lane) {
            const u32 place = warp.waiting >> lane & 1 ? warp.pc[lane] - 1 : warp.pc[lane];
            if (at == kNoInstruction) at = place, thread = first + static_cast<u32>(lane);
            place == at ? ++waiting : ++elsewhere;
            if (place != at && other == kNoInstruction) other = place;
        });
    }
    std::string message = std::to_string(waiting) + " threads wait at a barrier that never opens";
    if (elsewhere != 0) message += ", " + std::to_string(elsewhere) + " elsewhere, at " + line_of(other);
    if (exited != 0) message += ", " + std::to_string(exited) + " have exited";
    add(Tool::synccheck, "barrier_deadlock", thread, at, other, message);
}

}  // namespace ptxemu
