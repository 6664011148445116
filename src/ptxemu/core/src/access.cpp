#include "access.hpp"

#include <algorithm>
#include <cstdio>

#include "checks.hpp"
#include "device_memory.hpp"
#include "request.hpp"
#include "vectors.hpp"

namespace ptxemu {

std::string hexadecimal(u64 value) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

void Request::fail(Fault fault, int lane, const char* kind, const char* what, const std::string& where) const {
    const char* verb = op == Op::load ? "load" : op == Op::store ? "store" : "atomic";
    const std::string message = std::string(what) + " " + verb + " of " + std::to_string(bytes) + " bytes at " +
                                hexadecimal(address[lane]) + where;
    BlockChecks* const checks = warp.block->checks.get();
    if (checks == nullptr) return worker().fail(fault, instruction, message);
    checks->memory_fault(warp, instruction, lane, kind, message);
    worker().survive(fault, instruction, message);
}

namespace {

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

// Counts that depend on data which nobody has computed are no counts.
void misled(const Request& request) {
    request.worker().fail(Fault::unsampled, request.instruction,
                          "what is read here decides what is executed, and was computed by a launch of which only a "
                          "sample of blocks was executed");
}

bool lanes_in_bounds(const Request& request) {
    const Segments& segments = *request.launch().segments;
    for (u32 rest = request.active; rest != 0; rest &= rest - 1) {
        const u64 at = request.address[first_lane(rest)];
        const std::size_t found = segments.find(at);
        if (found == segments.list.size() || at + request.extent_of(first_lane(rest)) > segments.list[found].end) {
            out_of_bounds(request, first_lane(rest));
            return false;
        }
        if (request.launch().misleads(request.memory, found)) {
            misled(request);
            return false;
        }
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
    if (!holds(hint)) {
        const std::size_t found = request.launch().segments->find(span.lowest);
        if (!holds(found)) return lanes_in_bounds(request);
        hint = static_cast<u32>(found);
    }
    if (!request.launch().misleads(request.memory, hint)) return true;
    misled(request);
    return false;
}

Access open_filled(const Request& request, Space space);

// After a failure that was told: with checks the kernel goes on without the lanes for which there is no place.
template <class Inside>
Access without_lanes(const Request& request, Space space, Inside inside) {
    if (request.warp.block->checks == nullptr || request.worker().failed()) return {Pattern::fault, {}};
    u32 held = 0;
    for_each_lane(request.active, [&](int lane) {
        const u64 at = request.address[lane];
        held |= u32{(at & (request.bytes - 1)) == 0 && inside(at, request.extent_of(lane))} << lane;
    });
    Access access{Pattern::scattered, {}};
    if (held != 0)
        access = open_filled({request.warp, request.instruction, request.address, held, request.bytes, request.op,
                              request.memory, request.extent}, space);
    if (access.pattern == Pattern::fault) return access;
    access.pattern = Pattern::scattered;
    u8* const nowhere = request.worker().nowhere;
    std::memset(nowhere, 0, sizeof request.worker().nowhere);
    for_each_lane(request.active & ~held, [&](int lane) { access.pointer[lane] = nowhere; });
    return access;
}

Access without_lanes_outside(const Request& request, Space space) {
    const Segments& segments = *request.launch().segments;
    return without_lanes(request, space, [&](u64 at, u64 bytes) {
        const std::size_t found = segments.find(at);
        return found != segments.list.size() && at + bytes <= segments.list[found].end;
    });
}

Access pointers(const Request& request, Pattern pattern, u8* origin) {
    Access access;
    access.pattern = pattern;
    for (int l = 0; l < kLanes; ++l) access.pointer[l] = origin + request.address[l];
    return access;
}

Access device_pointers(const Request& request, Pattern pattern) {
    Access access;
    access.pattern = pattern;
    for (int l = 0; l < kLanes; ++l) access.pointer[l] = bytes_at(request.address[l]);
    return access;
}

Access open_global(const Request& request) {
    const Span span = Span::of(request.address, request.bytes);
    if (!aligned(request, span) || !global_in_bounds(request, span)) return without_lanes_outside(request, Space::global);
    const Pattern pattern = pattern_of(request, span);
    if (request.launch().counted) count_global(request, span, pattern);
    if (BlockChecks* checks = request.warp.block->checks.get()) checks->global(request.checked(), pattern);
    return device_pointers(request, pattern);
}

// Whether all lanes lie in a window of this size; the first that does not is told.
bool in_window(const Request& request, const Span& span, u64 size, const char* what) {
    if (!aligned(request, span)) return false;
    if (span.highest < size && size - span.highest >= request.bytes) return true;
    const auto inside = [&](u64 at) { return at < size && size - at >= request.bytes; };
    int lane = first_lane(request.active);
    while (inside(request.address[lane]) || !(request.active >> lane & 1)) ++lane;
    request.fail(Fault::illegal_address, lane, "out_of_bounds", what);
    return false;
}

Access without_lanes_beyond(const Request& request, Space space, u64 size) {
    return without_lanes(request, space, [&](u64 at, u64 bytes) { return at < size && size - at >= bytes; });
}

// What is wrong with a lane's access to shared memory of its cluster; null when nothing is.
const char* refused(const Block* holder, u64 offset, u32 bytes) {
    if (holder == nullptr) return "out-of-bounds cluster";
    if (holder->gone) return "shared memory of a block that has exited:";
    return offset + bytes > holder->shared_bytes ? "out-of-bounds shared" : nullptr;
}

// Some lane names a block of the cluster. Counted as if that were its own: what goes between SMs is not modelled.
Access open_cluster(const Request& request) {
    alignas(64) u64 offset[kLanes];
    for (int l = 0; l < kLanes; ++l) offset[l] = request.address[l] & ((1u << kRankShift) - 1);
    const Span span = Span::of(offset, request.bytes);
    if (!aligned(request, span)) return {Pattern::fault, {}};
    Access access{Pattern::scattered, {}};
    for (u32 rest = request.active; rest != 0; rest &= rest - 1) {
        const int lane = first_lane(rest);
        Block* const holder = request.warp.block->holder(request.address[lane]);
        if (const char* what = refused(holder, offset[lane], request.bytes)) {
            request.fail(Fault::illegal_address, lane, "out_of_bounds", what);
            if (request.worker().failed()) return {Pattern::fault, {}};
            access.pointer[lane] = request.worker().nowhere;
            continue;
        }
        access.pointer[lane] = holder->shared.data() + offset[lane];
        if (holder->checks && request.op != Op::load) holder->checks->written_from_outside(offset[lane], request.bytes);
    }
    if (request.launch().counted) count_shared({request.warp, request.instruction, offset, request.active, request.bytes,
                                                request.op, request.memory, request.extent}, span, Pattern::scattered);
    return access;
}

Access open_shared(const Request& request) {
    Block& block = *request.warp.block;
    const Span span = Span::of(request.address, request.bytes);
    if (span.highest >> kRankShift != 0) return open_cluster(request);
    if (!in_window(request, span, block.shared_bytes, "out-of-bounds shared"))
        return without_lanes_beyond(request, Space::shared, block.shared_bytes);
    const Access access = pointers(request, pattern_of(request, span), block.shared.data());
    if (request.launch().counted) count_shared(request, span, access.pattern);
    if (BlockChecks* checks = request.warp.block->checks.get()) checks->shared(request.checked());
    return access;
}

Access open_local(const Request& request) {
    const u64 size = request.launch().function->local_bytes;
    const Span span = Span::of(request.address, request.bytes);
    if (!in_window(request, span, size, "out-of-bounds local")) return without_lanes_beyond(request, Space::local, size);
    Access access = pointers(request, pattern_of(request, span), request.warp.local);
    access.pattern = Pattern::scattered;
    for (u64 l = 0; l < kLanes; ++l) access.pointer[l] += l * size;
    if (request.launch().counted) count_local(request);
    return access;
}

Access open_param(const Request& request) {
    u8* start = const_cast<u8*>(request.launch().parameters.data());
    const u64 size = request.launch().parameters.size();
    const Span span = Span::of(request.address, request.bytes);
    if (!in_window(request, span, size, "out-of-bounds parameter"))
        return without_lanes_beyond(request, Space::param, size);
    if (request.launch().counted) count_plain(request, span);
    return pointers(request, pattern_of(request, span), start);
}

Access open_constant(const Request& request) {
    const Span span = Span::of(request.address, request.bytes);
    if (!aligned(request, span) || !global_in_bounds(request, span)) return without_lanes_outside(request, Space::constant);
    if (request.launch().counted) count_plain(request, span);
    return device_pointers(request, pattern_of(request, span));
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

// Whether the addresses are `step` apart: a power of two, or zero.
template <class Vector, class T>
bool in_steps(const T* address, T step) {
    constexpr int kVector = sizeof(Vector) / sizeof(T);
    Vector count;
    if constexpr (sizeof(T) == 4)
        count = kWordCount;
    else
        count = kLongCount;
    const T shift = static_cast<T>(__builtin_ctz(static_cast<u32>(step | 128))), stride = step == 0 ? 0 : kVector << shift;
    Vector expected = (step == 0 ? Vector{} : count << shift) + address[0], different{};
    for (int l = 0; l < kLanes; l += kVector, expected += stride) different |= load_vector<Vector>(address + l) ^ expected;
    return is_zero(different);
}

// Contiguous, equal, or neither: of all lanes' addresses, or of these less a number.
template <class Vector, class T>
Pattern regularity(const T* address, u32 bytes) {
    const T step = address[1] - address[0];
    if ((step != 0 && step != bytes) || !in_steps<Vector>(address, step)) return Pattern::scattered;
    return step == 0 ? Pattern::uniform : Pattern::linear;
}

Regular open_range(const Request& request, Space space, const Range& range) {
    const u64 first = range.first;
    if (space == Space::generic && (first & kWindowMask) == 0) space = Space::global;
    u8* start = nullptr;
    if (space == Space::global || space == Space::constant) {
        const auto& list = request.launch().segments->list;
        const u32 hint = request.worker().segment_hint[request.memory];
        if (hint >= list.size() || first < list[hint].begin || first >= list[hint].end ||
            list[hint].end - first < range.bytes || request.launch().misleads(request.memory, hint))
            return {Pattern::scattered, nullptr};
        start = bytes_at(first);
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
    const Pattern pattern = wide ? regularity<Longs>(warp.lanes<u64>(operand), bytes)
                                 : regularity<Words>(warp.lanes<u32>(operand), bytes);
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

}  // namespace ptxemu
