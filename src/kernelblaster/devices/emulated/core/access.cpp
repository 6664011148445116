#include "access.hpp"

#include <algorithm>
#include <cstdio>

#include "checks.hpp"

namespace kbemu {

std::string hexadecimal(u64 value) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

namespace {

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
    void fail(Fault fault, int lane, const char* kind, const char* what, const std::string& where = "") const {
        const char* verb = op == Op::load ? "load" : op == Op::store ? "store" : "atomic";
        const std::string message = std::string(what) + " " + verb + " of " + std::to_string(bytes) + " bytes at " +
                                    hexadecimal(address[lane]) + where;
        if (BlockChecks* checks = warp.block->checks.get()) checks->memory_fault(warp, instruction, lane, kind, message);
        worker().fail(fault, instruction, message);
    }
};

Pattern pattern_of(const Request& request, const Span& span) {
    if (request.active != kAllLanes) return Pattern::scattered;
    return span.linear ? Pattern::linear : span.uniform ? Pattern::uniform : Pattern::scattered;
}

// Reports the first misaligned lane.
bool aligned(const Request& request, const Span& span) {
    if ((span.low_bits & (request.bytes - 1)) == 0) return true;
    int lane = first_lane(request.active);
    while ((request.address[lane] & (request.bytes - 1)) == 0 || !(request.active >> lane & 1)) ++lane;
    request.fail(Fault::misaligned_address, lane, "misaligned", "misaligned");
    return false;
}

// Where an address lies that no allocation holds, by the nearest one before it.
std::string neighbourhood(const Segments& segments, u64 at) {
    const auto next = std::upper_bound(segments.list.begin(), segments.list.end(), at,
                                       [](u64 value, const Segment& segment) { return value < segment.begin; });
    if (next == segments.list.begin()) return "";
    const Segment& before = *(next - 1);
    return ", " + std::to_string(at < before.end ? 0 : at - before.end) + " bytes after the end of an allocation of " +
           std::to_string(before.end - before.begin);
}

void out_of_bounds(const Request& request, int lane) {
    const u64 at = request.address[lane];
    if (const LaunchChecks* checks = request.launch().checks) {
        for (const Segment& freed : checks->freed) {
            if (at < freed.begin || at >= freed.end) continue;
            const std::string where = ", in an allocation of " + std::to_string(freed.end - freed.begin) + " that was freed";
            return request.fail(Fault::illegal_address, lane, "use_after_free", "use after free: global", where);
        }
    }
    const std::string where = neighbourhood(*request.launch().segments, at);
    request.fail(Fault::illegal_address, lane, "out_of_bounds", "out-of-bounds global", where);
}

bool lanes_in_bounds(const Request& request) {
    const Segments& segments = *request.launch().segments;
    for (u32 rest = request.active; rest != 0; rest &= rest - 1) {
        const u64 at = request.address[first_lane(rest)];
        const std::size_t found = segments.find(at);
        if (found < segments.list.size() && at + request.extent_of(first_lane(rest)) <= segments.list[found].end)
            continue;
        out_of_bounds(request, first_lane(rest));
        return false;
    }
    return true;
}

bool global_in_bounds(const Request& request, const Span& span) {
    const auto& list = request.launch().segments->list;
    u32& hint = request.worker().segment_hint[request.memory];
    const auto holds = [&](std::size_t k) {
        return k < list.size() && span.lowest >= list[k].begin && span.highest < list[k].end &&
               list[k].end - span.highest >= request.bytes;
    };
    if (holds(hint)) return true;
    const std::size_t found = request.launch().segments->find(span.lowest);
    if (!holds(found)) return lanes_in_bounds(request);
    hint = static_cast<u32>(found);
    return true;
}

u32 ideal_sectors(u32 lanes, u32 bytes, u32 sectors) {
    return std::min(sectors, (lanes * bytes + kSectorBytes - 1) / kSectorBytes);
}

void count_lines(const Request& request, const LineSet& set) {
    MemoryCounters& counters = request.counters();
    const u32 lanes = popcount(request.active);
    ++counters.requests;
    counters.lanes += lanes;
    counters.sectors += set.count;
    counters.ideal_sectors += ideal_sectors(lanes, request.bytes, set.count);
    counters.wavefronts += set.lines;

    Counters& totals = request.worker().counters;
    if (request.op == Op::atomic) for_each_lane(request.active, [&](int l) { totals.atomics.add(request.address[l]); });
    GranuleMap& granules = *request.launch().granules;
    const bool cached = request.op == Op::load && !(request.instruction.flags & kBypassL1);
    L1Cache& l1 = *request.warp.block->l1;
    u32 hits = 0;
    for (u32 k = 0; k < set.lines; ++k) {
        const u32 hit = cached ? l1.access(set.line[k], set.sectors[k]) : 0, missed = set.sectors[k] & ~hit;
        hits += popcount(hit);
        if (missed == 0) continue;
        if (request.op != Op::store) granules.read(set.line[k], missed);
        if (request.op != Op::load) granules.write(set.line[k], missed);
    }
    counters.l1_hit_sectors += hits;
    (request.op == Op::load ? totals.l2_read_sectors : totals.l2_write_sectors) += set.count - hits;
}

void count_global(const Request& request, const Span& span, Pattern pattern) {
    count_lines(request, pattern == Pattern::linear ? lines_between(span.lowest, u64{kLanes} * request.bytes)
                                                    : lines_of(request.address, span, request.bytes));
}

void count_shared(const Request& request, const Span& span, Pattern pattern) {
    MemoryCounters& counters = request.counters();
    ++counters.requests;
    counters.lanes += popcount(request.active);
    if (pattern == Pattern::linear)
        counters.wavefronts += std::max(1u, request.bytes / 4);
    else if (span.uniform)
        counters.wavefronts += request.op == Op::atomic && request.active == kAllLanes ? kLanes : 1;
    else
        counters.wavefronts += shared_wavefronts(request.address, request.active, request.bytes);
}

// Hardware interleaves local memory by lanes in words of four bytes: equal offsets of a warp are one line.
void count_local(const Request& request) {
    u64 interleaved[kLanes];
    const u64 warp_base = kLocalWindow | u64{request.warp.index} << 40;
    for (u64 l = 0; l < kLanes; ++l)
        interleaved[l] = warp_base + (request.address[l] & ~kWindowMask) / 4 * kLineBytes + l * 4;
    const int first = first_lane(request.active);
    for (int l = 0; l < kLanes; ++l)
        if (!(request.active >> l & 1)) interleaved[l] = interleaved[first];
    const LineSet set = lines_of(interleaved, Span::of(interleaved, 4), 4);
    const u32 words = std::max(1u, request.bytes / 4);
    MemoryCounters& counters = request.counters();
    ++counters.requests;
    counters.lanes += popcount(request.active);
    counters.sectors += set.count * words;
    counters.ideal_sectors += ideal_sectors(popcount(request.active), request.bytes, set.count * words);
    counters.wavefronts += set.lines * words;
    u32 hits = 0;
    for (u32 word = 0; word < words; ++word)
        for (u32 k = 0; k < set.lines; ++k)
            hits += popcount(request.warp.block->l1->access(set.line[k] + word, set.sectors[k]));
    Counters& totals = request.worker().counters;
    // The L1 writes local memory back when a line has to go, which is as often as one comes.
    if (request.op == Op::load) {
        counters.l1_hit_sectors += hits;
        totals.l2_read_sectors += set.count * words - hits;
    } else {
        totals.l2_write_sectors += set.count * words - hits;
    }
}

void count_plain(const Request& request, const Span& span) {
    MemoryCounters& counters = request.counters();
    ++counters.requests;
    counters.lanes += popcount(request.active);
    counters.wavefronts += span.uniform ? 1 : popcount(request.active);
}

Access pointers(const Request& request, Pattern pattern, u8* origin) {
    Access access;
    access.pattern = pattern;
    for (int l = 0; l < kLanes; ++l) access.pointer[l] = origin + request.address[l];
    return access;
}

Access open_global(const Request& request) {
    const Span span = Span::of(request.address, request.bytes);
    if (!aligned(request, span) || !global_in_bounds(request, span)) return {Pattern::fault, {}};
    const Pattern pattern = pattern_of(request, span);
    if (request.launch().counted) count_global(request, span, pattern);
    if (BlockChecks* checks = request.warp.block->checks.get()) checks->global(request.checked(), pattern);
    return pointers(request, pattern, nullptr);
}

Access open_window(const Request& request, const Span& span, u8* origin, u64 size, const char* what) {
    if (!aligned(request, span)) return {Pattern::fault, {}};
    if (span.highest >= size || size - span.highest < request.bytes) {
        const auto inside = [&](u64 at) { return at < size && size - at >= request.bytes; };
        int lane = first_lane(request.active);
        while (inside(request.address[lane]) || !(request.active >> lane & 1)) ++lane;
        request.fail(Fault::illegal_address, lane, "out_of_bounds", what);
        return {Pattern::fault, {}};
    }
    return pointers(request, pattern_of(request, span), origin);
}

Access open_shared(const Request& request) {
    Block& block = *request.warp.block;
    const Span span = Span::of(request.address, request.bytes);
    const Access access = open_window(request, span, block.shared.data(), block.shared_bytes, "out-of-bounds shared");
    if (access.pattern == Pattern::fault) return access;
    if (request.launch().counted) count_shared(request, span, access.pattern);
    if (BlockChecks* checks = request.warp.block->checks.get()) checks->shared(request.checked());
    return access;
}

Access open_local(const Request& request) {
    const u64 size = request.launch().function->local_bytes;
    const Span span = Span::of(request.address, request.bytes);
    Access access = open_window(request, span, request.warp.local, size, "out-of-bounds local");
    if (access.pattern == Pattern::fault) return access;
    access.pattern = Pattern::scattered;
    for (u64 l = 0; l < kLanes; ++l) access.pointer[l] += l * size;
    if (request.launch().counted) count_local(request);
    return access;
}

Access open_param(const Request& request) {
    u8* start = const_cast<u8*>(request.launch().parameters.data());
    const u64 size = request.launch().parameters.size();
    const Span span = Span::of(request.address, request.bytes);
    const Access access = open_window(request, span, start, size, "out-of-bounds parameter");
    if (access.pattern != Pattern::fault && request.launch().counted) count_plain(request, span);
    return access;
}

Access open_constant(const Request& request) {
    const Span span = Span::of(request.address, request.bytes);
    if (!aligned(request, span) || !global_in_bounds(request, span)) return {Pattern::fault, {}};
    if (request.launch().counted) count_plain(request, span);
    return pointers(request, pattern_of(request, span), nullptr);
}

Access open_space(const Request& request, Space space);

// Gives lanes that are not active the address of one that is.
Access open_filled(const Request& request, Space space) {
    alignas(64) u64 address[kLanes];
    const u64 first = request.address[first_lane(request.active)];
    for (int l = 0; l < kLanes; ++l) address[l] = request.active >> l & 1 ? request.address[l] : first;
    return open_space({request.warp, request.instruction, address, request.active, request.bytes, request.op,
                       request.memory, request.extent},
                      space);
}

// A generic request may mix windows: each is opened with its own lanes.
Access open_generic(const Request& request) {
    const u64 window = request.address[0] & kWindowMask;
    u32 same = 0;
    for (int l = 0; l < kLanes; ++l) same |= u32{(request.address[l] & kWindowMask) == window} << l;
    if (same == kAllLanes) {
        const Space space = window == kSharedWindow  ? Space::shared
                            : window == kLocalWindow ? Space::local
                            : window == kParamWindow ? Space::param
                                                     : Space::global;
        if (space == Space::global) return open_global(request);
        alignas(64) u64 offset[kLanes];
        for (int l = 0; l < kLanes; ++l) offset[l] = request.address[l] - window;
        return open_space({request.warp, request.instruction, offset, request.active, request.bytes, request.op,
                           request.memory},
                          space);
    }
    const auto part = [&](u32 lanes) {
        return open_filled({request.warp, request.instruction, request.address, lanes, request.bytes, request.op,
                            request.memory},
                           Space::generic);
    };
    Access access = part(request.active & same);
    if (access.pattern == Pattern::fault) return access;
    const u32 rest = request.active & ~same;
    const Access others = part(rest);
    if (others.pattern == Pattern::fault) return others;
    access.pattern = Pattern::scattered;
    for_each_lane(rest, [&](int l) { access.pointer[l] = others.pointer[l]; });
    return access;
}

Access open_space(const Request& request, Space space) {
    switch (space) {
        case Space::global: return open_global(request);
        case Space::shared: return open_shared(request);
        case Space::local: return open_local(request);
        case Space::generic: return open_generic(request);
        case Space::constant: return open_constant(request);
        case Space::param: return open_param(request);
    }
    return {Pattern::fault, {}};
}

// Contiguous, equal, or neither: of all lanes' addresses, or of these less a number.
template <class T>
Pattern regularity(const T* address, u32 bytes) {
    const int shift = __builtin_ctz(bytes);
    T apart = 0, different = 0;
    for (T l = 0; l < kLanes; ++l) {
        apart |= address[l] ^ (address[0] + (l << shift));
        different |= address[l] ^ address[0];
    }
    return apart == 0 ? Pattern::linear : different == 0 ? Pattern::uniform : Pattern::scattered;
}

struct Range {
    Pattern pattern;
    u64 first, bytes;
};

void count_range(const Request& request, Space space, const Range& range) {
    const bool linear = range.pattern == Pattern::linear;
    if (space == Space::global) return count_lines(request, lines_between(range.first, range.bytes));
    MemoryCounters& counters = request.counters();
    ++counters.requests;
    counters.lanes += kLanes;
    counters.wavefronts += !linear ? 1 : space == Space::shared ? std::max(1u, request.bytes / 4) : u32{kLanes};
}

Regular open_range(const Request& request, Space space, const Range& range) {
    const u64 first = range.first;
    if (space == Space::generic && (first & kWindowMask) == 0) space = Space::global;
    u8* start = nullptr;
    if (space == Space::global || space == Space::constant) {
        const auto& list = request.launch().segments->list;
        const u32 hint = request.worker().segment_hint[request.memory];
        if (hint >= list.size() || first < list[hint].begin || first >= list[hint].end ||
            list[hint].end - first < range.bytes)
            return {Pattern::scattered, nullptr};
        start = reinterpret_cast<u8*>(first);
    } else if (space == Space::shared || space == Space::param) {
        Block& block = *request.warp.block;
        const std::vector<u8>& parameters = request.launch().parameters;
        const u64 size = space == Space::shared ? block.shared_bytes : parameters.size();
        if (first >= size || size - first < range.bytes) return {Pattern::scattered, nullptr};
        start = (space == Space::shared ? block.shared.data() : const_cast<u8*>(parameters.data())) + first;
    } else {
        return {Pattern::scattered, nullptr};
    }
    if (request.launch().counted) count_range(request, space, range);
    return {range.pattern, start};
}

}  // namespace

void read_addresses(const Warp& warp, u32 operand, bool wide, s64 offset, u64* address) {
    if (wide) {
        const u64* base = warp.lanes<u64>(operand);
        for (int l = 0; l < kLanes; ++l) address[l] = base[l] + static_cast<u64>(offset);
    } else {
        const u32* base = warp.lanes<u32>(operand);
        for (int l = 0; l < kLanes; ++l) address[l] = base[l] + static_cast<u32>(offset);
    }
}

Access open_addresses(Warp& warp, const Instruction& instruction, Space space, const u64* address, u32 active,
                      u32 bytes, Op op, u32 memory, const u32* extent) {
    const Request request{warp, instruction, address, active, bytes, op, memory, extent};
    return active == kAllLanes ? open_space(request, space) : open_filled(request, space);
}

Regular open_regular(Warp& warp, const Instruction& instruction, u32 active, u32 bytes, Op op) {
    constexpr Regular kOther{Pattern::scattered, nullptr};
    if (active != kAllLanes || warp.block->checks) return kOther;
    const Space space = static_cast<Space>(instruction.extra);
    const bool wide = (instruction.flags & kWideAddress) != 0;
    if (space == Space::local) return kOther;
    const u32 operand = instruction.operand[4];
    const Pattern pattern = wide ? regularity(warp.lanes<u64>(operand), bytes) : regularity(warp.lanes<u32>(operand), bytes);
    if (pattern == Pattern::scattered) return kOther;
    u64 first = wide ? warp.lanes<u64>(operand)[0] + static_cast<u64>(instruction.immediate)
                     : warp.lanes<u32>(operand)[0] + static_cast<u32>(instruction.immediate);
    if (space == Space::shared) first = static_cast<u32>(first);
    const Range range{pattern, first, pattern == Pattern::linear ? kLanes * bytes : bytes};
    if ((first & (bytes - 1)) != 0) return kOther;
    return open_range(Request{warp, instruction, nullptr, active, bytes, op, instruction.memory}, space, range);
}

Access open_access(Warp& warp, const Instruction& instruction, u32 active, u32 bytes, Op op) {
    alignas(64) u64 address[kLanes];
    read_addresses(warp, instruction.operand[4], (instruction.flags & kWideAddress) != 0, instruction.immediate,
                   address);
    const Space space = static_cast<Space>(instruction.extra);
    // Shared and local addresses are 32 bits wide even when the register has 64.
    if (space == Space::shared || space == Space::local)
        for (u64& one : address) one = static_cast<u32>(one);
    return open_addresses(warp, instruction, space, address, active, bytes, op, instruction.memory);
}

}  // namespace kbemu
