// One memory request of a warp, as it is opened (access.cpp) and as it is counted (request_counts.cpp).
#pragma once

#include <algorithm>

#include "checks.hpp"

namespace ptxemu {

struct Request {
    Warp& warp;
    const Instruction& instruction;
    const u64* address;  // lanes that are not active repeat one that is
    u32 active;
    u32 bytes;
    Op op;
    u32 memory;
    const u32* extent = nullptr;  // per lane, where it may be less than `bytes`

    u32 extent_of(int lane) const { return extent != nullptr ? std::min(extent[lane], bytes) : bytes; }
    Worker& worker() const { return *warp.worker; }
    CheckedAccess checked() const { return {warp, instruction, address, active, bytes, op, extent}; }
    const Launch& launch() const { return *warp.worker->launch; }
    MemoryCounters& counters() const { return warp.worker->counters.memory[memory]; }
    // `kind` is what the checks call it, `where` what is known of the place.
    void fail(Fault fault, int lane, const char* kind, const char* what, const std::string& where = "") const;
};

struct Range {
    Pattern pattern;
    u64 first, bytes;
};

void count_lines(const Request& request, const LineSet& set);
void count_global(const Request& request, const Span& span, Pattern pattern);
void count_shared(const Request& request, const Span& span, Pattern pattern);
void count_local(const Request& request);
// Parameters and constants.
void count_plain(const Request& request, const Span& span);
// A request that is known to be regular.
void count_range(const Request& request, Space space, const Range& range);

}  // namespace ptxemu
