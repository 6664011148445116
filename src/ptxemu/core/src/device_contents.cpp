#include "device_contents.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host_clock.hpp"
#include "runtime.hpp"

namespace ptxemu {
namespace {

// Four chains, so that memory is what limits it; another word anywhere gives another sum.
u64 checksum(u64 begin, u64 end) {
    constexpr u64 kFactor = 0x9E3779B97F4A7C15ull;
    u64 sums[4] = {1, 2, 3, 4};
    u64 at = begin;
    for (; at + 32 <= end; at += 32) {
        u64 words[4];
        std::memcpy(words, bytes_at(at), 32);
        for (int i = 0; i < 4; ++i) sums[i] = (sums[i] ^ words[i]) * kFactor;
    }
    u64 rest[4] = {};
    std::memcpy(rest, bytes_at(at), end - at);
    u64 all = 0;
    for (int i = 0; i < 4; ++i) all = (all ^ (sums[i] ^ rest[i]) * kFactor) * kFactor + (all >> 29);
    return all;
}

u64 total(const Segments& segments) {
    u64 bytes = 0;
    for (const Segment& one : segments.list) bytes += one.end - one.begin;
    return bytes;
}

}  // namespace

void DeviceContents::keep(const Arena& arena, const HostMemory& pinned) {
    sums_.clear();
    const Segments segments = arena.segments();
    const u64 bytes = total(segments);
    if (bytes > kMostBytes || looked_at_ + bytes > kMostBytesInAll) return;
    looked_at_ += 2 * bytes;
    for (const Segment& one : segments.list) sums_[one.begin] = checksum(one.begin, one.end);
    for (const auto& [begin, length] : pinned.ranges())
        if (length <= kMostPinnedBytes) sums_[begin] = checksum(begin, begin + length);
}

DeviceContents::Changes DeviceContents::changes(const Arena& arena, const HostMemory& pinned) const {
    Changes found;
    if (sums_.empty()) return found;
    for (const auto& [begin, length] : pinned.ranges()) {
        const auto known = sums_.find(begin);
        if (begun_ && known != sums_.end() && known->second != checksum(begin, begin + length)) found.shared_bytes += length;
    }
    for (const Segment& one : arena.segments().list) {
        const auto known = sums_.find(one.begin);
        if (known == sums_.end() || known->second == checksum(one.begin, one.end)) continue;
        if (shared_.count(one.begin) == 0)
            found.own = true;
        else if (begun_)
            found.shared_bytes += one.end - one.begin;
    }
    return found;
}

void host_code_goes_on() { runtime().contents.keep(runtime().arena, runtime().host_memory); }

void host_code_stops() {
    const DeviceContents::Changes found = runtime().contents.changes(runtime().arena, runtime().host_memory);
    if (found.shared_bytes != 0) {  // pages go over the bus to the host, and back
        HostClock::waited();
        report_transfer("device_to_host", found.shared_bytes);
        report_transfer("host_to_device", found.shared_bytes);
    }
    if (!found.own) return;
    std::fprintf(stderr, "ptxcudart: host code wrote to memory of the device\n");
    std::abort();  // a GPU's program ends there, too
}

}  // namespace ptxemu
