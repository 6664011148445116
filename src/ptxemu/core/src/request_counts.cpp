// What a memory request adds to the counters.
#include "request.hpp"

namespace ptxemu {
namespace {

u32 ideal_sectors(u32 lanes, u32 bytes, u32 sectors) {
    return std::min(sectors, (lanes * bytes + kSectorBytes - 1) / kSectorBytes);
}

// Of the warp that asks, in the launch.
u32 number_of(const Request& request) {
    const u32 *position = request.warp.block->position, *grid = request.launch().grid;
    return ((position[2] * grid[1] + position[1]) * grid[0] + position[0]) * kLanes + request.warp.index;
}

// The most lanes that want the same address.
u32 most_at_one_place(const u64* address, u32 active) {
    u32 most = 0;
    for (u32 rest = active; popcount(rest) > most;) {
        const u64 place = address[first_lane(rest)];
        u32 same = 0;
        for_each_lane(rest, [&](int lane) { same |= u32{address[lane] == place} << lane; });
        rest &= ~same;
        most = std::max(most, popcount(same));
    }
    return most;
}

// The most lanes that want a word of the same bank.
u32 most_in_one_bank(const u64* address, u32 active) {
    u8 lanes[kLanes] = {};
    u32 most = 0;
    for_each_lane(active, [&](int lane) { most = std::max<u32>(most, ++lanes[address[lane] / 4 % kLanes]); });
    return most;
}

}  // namespace

void count_lines(const Request& request, const LineSet& set) {
    MemoryCounters& counters = request.counters();
    const u32 lanes = popcount(request.active);
    ++counters.requests;
    counters.lanes += lanes;
    counters.sectors += set.count;
    counters.ideal_sectors += ideal_sectors(lanes, request.bytes, set.count);

    Counters& totals = request.worker().counters;
    if (request.op == Op::atomic) {
        counters.wavefronts += totals.atomics.add(request.address, request.active);
        if (request.bytes == 2) counters.rounds += totals.words.add(request.address, request.active);
        totals.atomics.mark(request.worker().segment_hint[request.memory]);
    } else {
        counters.wavefronts += set.lines;
    }
    GranuleMap& granules = *request.launch().granules;
    const bool cached = request.op == Op::load && !(request.instruction.flags & kBypassL1);
    L1Cache& l1 = *request.warp.block->l1;
    const u32 warp = number_of(request);
    u32 hits = 0;
    u64 unshared = 0;
    bool shared = false;
    for (u32 k = 0; k < set.lines; ++k) {
        const L1Cache::Touched found = cached ? l1.access(set.line[k], set.sectors[k], warp) : L1Cache::Touched{};
        const u32 missed = set.sectors[k] & ~found.hits;
        hits += popcount(found.hits);
        if (found.shared) counters.l1_shared_sectors += popcount(found.hits);
        shared |= found.shared && found.hits != 0;
        if (request.op == Op::store && l1.store(set.line[k], warp)) counters.l1_hit_sectors += popcount(set.sectors[k]);
        if (missed == 0) continue;
        if (request.op != Op::store) granules.read(set.line[k], missed);
        if (request.op == Op::load) totals.repeated_read_sectors += request.warp.block->reads.add(set.line[k], missed);
        if (request.op != Op::load) granules.write(set.line[k], missed);
    }
    counters.l1_hit_sectors += hits;
    ++(hits < set.count ? counters.missed_requests : shared ? counters.shared_requests : unshared);
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
    if (request.op == Op::atomic) {
        counters.rounds += pattern == Pattern::linear ? 1 : most_at_one_place(request.address, request.active);
        counters.bank_turns += most_in_one_bank(request.address, request.active);
    }
    if (pattern == Pattern::linear)
        counters.wavefronts += std::max(1u, request.bytes / 4);
    else if (span.uniform)
        ++counters.wavefronts;
    else
        counters.wavefronts += shared_wavefronts(request.address, span, request.active, request.bytes);
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
    const u32 warp = number_of(request);
    u32 hits = 0;
    for (u32 word = 0; word < words; ++word)
        for (u32 k = 0; k < set.lines; ++k)
            hits += popcount(request.warp.block->l1->access(set.line[k] + word, set.sectors[k], warp).hits);
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

void count_range(const Request& request, Space space, const Range& range) {
    const bool linear = range.pattern == Pattern::linear;
    if (space == Space::global) return count_lines(request, lines_between(range.first, range.bytes));
    MemoryCounters& counters = request.counters();
    ++counters.requests;
    counters.lanes += kLanes;
    counters.wavefronts += !linear ? 1 : space == Space::shared ? std::max(1u, request.bytes / 4) : u32{kLanes};
}

}  // namespace ptxemu
