#include "accounting.hpp"

#include <algorithm>
#include <new>

#include "vectors.hpp"

namespace ptxemu {
namespace {

constexpr u32 kBanks = 32;
constexpr u32 kBankBytes = 4;
constexpr u32 kSectorsPerLine = kLineBytes / kSectorBytes;

// Eight addresses at once.
using Vector = Longs;
constexpr int kVector = sizeof(Vector) / sizeof(u64);

Vector load(const u64* from) { return load_vector<Vector>(from); }

// Combines the eight elements, each step those half as far apart.
template <class Combine>
u64 fold(Vector value, Combine combine) {
    value = combine(value, __builtin_shuffle(value, Vector{4, 5, 6, 7, 0, 1, 2, 3}));
    value = combine(value, __builtin_shuffle(value, Vector{2, 3, 0, 1, 6, 7, 4, 5}));
    value = combine(value, __builtin_shuffle(value, Vector{1, 0, 3, 2, 5, 4, 7, 6}));
    return value[0];
}

// Position of a line in a LineSet, by a small open-addressed table: requests touch at most 32 lines.
class LineIndex {
public:
    LineIndex() { std::fill(std::begin(slot_), std::end(slot_), u8{kNone}); }

    u32 find_or_add(LineSet& set, u64 line) {
        u32 at = static_cast<u32>(line * 0x9e3779b97f4a7c15ull >> 58);
        for (; slot_[at] != kNone; at = (at + 1) & 63)
            if (set.line[slot_[at]] == line) return slot_[at];
        slot_[at] = static_cast<u8>(set.lines);
        set.add(line, 0);
        return set.lines - 1;
    }

private:
    static constexpr u8 kNone = 255;
    u8 slot_[64];
};

// Passes until all of some lanes are served: in each, a bank serves those that want one word of it. Words have 2^shift
// bytes, as many as banks serve.
u32 phase_wavefronts(const u64* address, u32 active, u32 shift) {
    u64 served[kBanks] = {};
    const u64 banks = (kBanks * kBankBytes >> shift) - 1;
    u32 wavefronts = 0;
    for (u32 left = active; left != 0; ++wavefronts) {
        for_each_lane(left, [&](int l) { served[address[l] >> shift & banks] = address[l] >> shift; });
        u32 waiting = 0;
        for_each_lane(left, [&](int l) { waiting |= u32{served[address[l] >> shift & banks] != address[l] >> shift} << l; });
        left = waiting;
    }
    return wavefronts;
}

// Whether one pass serves them.
bool conflict_free(const u64* address, u32 lanes, u32 shift) {
    u64 owner[kBanks];
    const u64 banks = (kBanks * kBankBytes >> shift) - 1;
    for (u32 l = 0; l < lanes; ++l) owner[address[l] >> shift & banks] = address[l] >> shift;
    u64 different = 0;
    for (u32 l = 0; l < lanes; ++l) different |= owner[address[l] >> shift & banks] ^ address[l] >> shift;
    return different == 0;
}

// Passes of a request for words of a bank's width that lie near each other.
constexpr u64 kNearWords = 4 * kBanks;

u32 near_wavefronts(const u64* address, u64 lowest) {
    const u64 first = lowest / (kBanks * kBankBytes) * kBanks;
    Vector low{}, high{};
    for (int at = 0; at < kLanes; at += kVector) {
        const Vector word = load(address + at) / kBankBytes - first;
        const Vector bit = Vector{} + 1ull << (word & 63);
        low |= word < 64 ? bit : Vector{};
        high |= word < 64 ? Vector{} : bit;
    }
    const auto both = [](Vector a, Vector b) { return a | b; };
    const u64 words[] = {fold(low, both), fold(high, both)};
    // How many words are wanted of each bank, in two bits of a counter; four are all.
    u32 one = 0, two = 0, four = 0;
    for (const u64 pair : words)
        for (const u32 row : {static_cast<u32>(pair), static_cast<u32>(pair >> 32)}) {
            const u32 carry = one & row;
            one ^= row;
            four |= two & carry;
            two ^= carry;
        }
    return four != 0 ? 4 : (one & two) != 0 ? 3 : two != 0 ? 2 : 1;
}

}  // namespace

void MemoryCounters::add(const MemoryCounters& other) {
    requests += other.requests;
    lanes += other.lanes;
    sectors += other.sectors;
    ideal_sectors += other.ideal_sectors;
    l1_hit_sectors += other.l1_hit_sectors;
    l1_shared_sectors += other.l1_shared_sectors;
    wavefronts += other.wavefronts;
    missed_requests += other.missed_requests;
    shared_requests += other.shared_requests;
    rounds += other.rounds;
    bank_turns += other.bank_turns;
}

void AtomicSpans::add(const AtomicSpans& other) {
    for (u32 segment = 0; segment < other.segments_.size(); ++segment)
        if (other.segments_[segment]) mark(segment);
    if (other.spans_.empty()) return;
    if (spans_.empty()) spans_.assign(kPlaces, 0), lines_.assign(kPlaces, 0);
    for (std::size_t k = 0; k < kPlaces; ++k) spans_[k] += other.spans_[k], lines_[k] += other.lines_[k];
}

u64 AtomicSpans::most_of(const std::vector<u64>& passes) {
    return passes.empty() ? 0 : *std::max_element(passes.begin(), passes.end());
}

u32 AtomicSpans::add(const u64* address, u32 active) {
    u64 sector[kLanes];
    u32 passes[kLanes], sectors = 0, total = 0;
    for_each_lane(active, [&](int l) {
        u32 same = 1, k = 0;
        for_each_lane(active & ((1u << l) - 1), [&](int before) { same += address[before] == address[l]; });
        while (k < sectors && sector[k] != address[l] / kSectorBytes) ++k;
        if (k == sectors) sector[sectors] = address[l] / kSectorBytes, passes[sectors++] = 0;
        passes[k] = std::max(passes[k], same);
    });
    for (u32 k = 0; k < sectors; ++k) {
        add(sector[k], passes[k]);
        total += passes[k];
    }
    return total;
}

u32 SharedWords::add(const u64* address, u32 active) {
    if (lanes_.empty()) lanes_.assign(kPlaces, 0);
    u32 most = 0;
    for (u32 rest = active; rest != 0;) {
        const u64 word = address[first_lane(rest)] / 4;
        u32 same = 0;
        for_each_lane(rest, [&](int lane) { same |= u32{address[lane] / 4 == word} << lane; });
        rest &= ~same;
        lanes_[word * 0x9e3779b97f4a7c15ull >> 48] += popcount(same);
        most = std::max(most, popcount(same));
    }
    return most;
}

void SharedWords::add(const SharedWords& other) {
    if (other.lanes_.empty()) return;
    if (lanes_.empty()) lanes_.assign(kPlaces, 0);
    for (std::size_t k = 0; k < kPlaces; ++k) lanes_[k] += other.lanes_[k];
}

u64 SharedWords::most() const {
    if (lanes_.empty()) return 0;
    u64 all = 0;
    for (const u32 count : lanes_) all += count;
    const u64 most = *std::max_element(lanes_.begin(), lanes_.end());
    return most - (all - most) / kPlaces;
}

void Counters::resize(std::size_t instructions, std::size_t memory_instructions) {
    executed.assign(instructions, 0);
    thread_count.assign(instructions, 0);
    memory.assign(memory_instructions, {});
}

void Counters::add(const Counters& other) {
    for (std::size_t k = 0; k < executed.size(); ++k) {
        executed[k] += other.executed[k];
        thread_count[k] += other.thread_count[k];
    }
    for (std::size_t k = 0; k < memory.size(); ++k) memory[k].add(other.memory[k]);
    branches += other.branches;
    divergent_branches += other.divergent_branches;
    barriers += other.barriers;
    l2_read_sectors += other.l2_read_sectors;
    repeated_read_sectors += other.repeated_read_sectors;
    l2_write_sectors += other.l2_write_sectors;
    atomics.add(other.atomics);
    words.add(other.words);
    longest_warp = std::max(longest_warp, other.longest_warp);
}

void Counters::scale(const Share& share) {
    if (share.whole()) return;
    for (u64& one : executed) one = share.scaled(one);
    for (u64& one : thread_count) one = share.scaled(one);
    for (MemoryCounters& one : memory)
        for (u64* part : {&one.requests, &one.lanes, &one.sectors, &one.ideal_sectors, &one.l1_hit_sectors,
                          &one.l1_shared_sectors, &one.wavefronts, &one.missed_requests, &one.shared_requests,
                          &one.rounds, &one.bank_turns})
            *part = share.scaled(*part);
    for (u64* one : {&branches, &divergent_branches, &barriers, &l2_read_sectors, &l2_write_sectors, &repeated_read_sectors})
        *one = share.scaled(*one);
}

void L1Cache::configure(u32 bytes, u32 warps) {
    warps_ = std::max(1u, warps);
    sets_ = std::max(1u, bytes / kLineBytes / kWays);
    reciprocal_ = ~0ull / sets_ + 1;
    lines_.assign(std::size_t{sets_} * kWays, {});
    clock_ = 0;
}

void L1Cache::invalidate() { std::fill(lines_.begin(), lines_.end(), Line{}); }

namespace {

// Hardware hashes the set index, so that strides of a power of two do not fall into few sets.
u64 set_hash(u64 tag) { return tag * 0x9e3779b97f4a7c15ull >> 32; }

}  // namespace

bool L1Cache::gone(const Line& line) const {
    const u64 run = std::min(turn_ - line.turn + 1, warps_);
    return line.warp == warp_ && u64{brought_ - line.brought} * warps_ * 32 > lines_.size() * run * 31;
}

L1Cache::Touched L1Cache::touch(u64 tag, u32 wanted, u32 warp) {
    turn_ += warp != warp_;
    warp_ = warp;
    // The remainder of a 32-bit number: the fraction of its quotient, times the divisor.
    const u64 fraction = reciprocal_ * set_hash(tag);
    Line* set = &lines_[static_cast<u64>(static_cast<u128>(fraction) * sets_ >> 64) * kWays];
    ++clock_;
    Line* oldest = set;
    for (Line* line = set; line < set + kWays; ++line) {
        if (line->tag == tag) {
            const bool found = !gone(*line), shared = line->warp != warp;
            const u32 valid = found ? line->valid_sectors : 0;
            brought_ += !found;
            *line = {tag, clock_, valid | wanted, warp, brought_, turn_};
            return {found, shared, valid & wanted};
        }
        if (line->last_use < oldest->last_use) oldest = line;
    }
    *oldest = {tag, clock_, wanted, warp, ++brought_, turn_};
    return {false, false, 0};
}

// Pages of the system's, which are zero until they are written.
GranuleBits::GranuleBits(Segment range)
    : first_line_(range.begin / kLineBytes), words_((range.end - range.begin) / kSectorBytes / 64 + 1),
      bits_(static_cast<std::atomic<u64>*>(std::calloc(words_, sizeof(std::atomic<u64>)))) {
    if (!bits_) throw std::bad_alloc();
}

void GranuleBits::mark(u64 line, u32 sectors) {
    const u64 index = line - first_line_, bits = u64{sectors} << index % 16 * 4;
    std::atomic<u64>& word = bits_[index / 16];
    if (~word.load(std::memory_order_relaxed) & bits) word.fetch_or(bits, std::memory_order_relaxed);
}

u64 GranuleBits::count(u64 begin, u64 end) const {
    const u64 base = first_line_ * kLineBytes;
    const u64 first = (begin - base) / kSectorBytes;
    const u64 last = std::min((end - base + kSectorBytes - 1) / kSectorBytes, words_ * 64);
    u64 granules = 0;
    for (u64 at = first; at < last;) {
        const u64 bit = at % 64, span = std::min<u64>(64 - bit, last - at);
        const u64 wanted = (span == 64 ? ~0ull : (1ull << span) - 1) << bit;
        granules += static_cast<u64>(__builtin_popcountll(bits_[at / 64].load() & wanted));
        at += span;
    }
    return granules;
}

Span Span::of(const u64* address, u32 bytes) {
    const u64 first = address[0];
    Vector difference{}, from_line{};
    Vector expected = kLongCount * bytes + first;
    for (int at = 0; at < kLanes; at += kVector, expected += u64{kVector} * bytes) {
        const Vector here = load(address + at);
        difference |= here ^ first;
        from_line |= here ^ expected;
    }
    if (is_zero(difference)) return {first, first, first, false, true};
    if (is_zero(from_line)) return {first, first + (kLanes - 1) * u64{bytes}, first, true, false};
    Vector lowest = load(address), highest = lowest, low_bits = lowest;
    for (int at = kVector; at < kLanes; at += kVector) {
        const Vector here = load(address + at);
        lowest = here < lowest ? here : lowest;
        highest = here > highest ? here : highest;
        low_bits |= here;
    }
    return {fold(lowest, [](Vector a, Vector b) { return a < b ? a : b; }),
            fold(highest, [](Vector a, Vector b) { return a > b ? a : b; }),
            fold(low_bits, [](Vector a, Vector b) { return a | b; }), false, false};
}

LineSet lines_between(u64 first, u64 bytes) {
    LineSet set;
    const u64 end = (first + bytes - 1) / kSectorBytes;
    for (u64 sector = first / kSectorBytes; sector <= end;) {
        const u64 line = sector / kSectorsPerLine, last = std::min(end, line * kSectorsPerLine + kSectorsPerLine - 1);
        set.add(line, ((2u << (last - sector)) - 1) << sector % kSectorsPerLine);
        sector = last + 1;
    }
    return set;
}

LineSet lines_of(const u64* address, const Span& span, u32 bytes) {
    LineSet set;
    const u64 first = span.lowest / kLineBytes * kSectorsPerLine;
    if ((span.highest + bytes - 1) / kSectorBytes - first < 64) {
        Vector bits{};
        for (int at = 0; at < kLanes; at += kVector) bits |= Vector{} + 1ull << (load(address + at) / kSectorBytes - first);
        u64 touched = fold(bits, [](Vector a, Vector b) { return a | b; });
        for (u64 line = first / kSectorsPerLine; touched != 0; ++line, touched >>= kSectorsPerLine)
            if (touched & 15) set.add(line, touched & 15);
        return set;
    }
    LineIndex index;
    for (int l = 0; l < kLanes; ++l) {
        const u64 sector = address[l] / kSectorBytes;
        set.sectors[index.find_or_add(set, sector / kSectorsPerLine)] |= 1u << sector % kSectorsPerLine;
    }
    for (u32 k = 0; k < set.lines; ++k) set.count += popcount(set.sectors[k]);
    return set;
}

u32 shared_wavefronts(const u64* address, const Span& span, u32 active, u32 bytes) {
    if (active == 0) return 0;
    if (bytes <= kBankBytes && span.highest / kBankBytes - span.lowest / kBankBytes < kNearWords - kBanks)
        return near_wavefronts(address, span.lowest);
    const u32 shift = bytes <= kBankBytes ? 2 : static_cast<u32>(__builtin_ctz(bytes));
    const u32 lanes_per_phase = kBanks * kBankBytes >> shift;
    u32 wavefronts = 0;
    for (u32 first = 0; first < kLanes; first += lanes_per_phase) {
        const u32 phase = active >> first & (lanes_per_phase == 32 ? kAllLanes : (1u << lanes_per_phase) - 1);
        if (phase == 0) continue;
        const u64* const lanes = address + first;
        wavefronts += conflict_free(lanes, lanes_per_phase, shift) ? 1 : phase_wavefronts(lanes, phase, shift);
    }
    return wavefronts;
}

}  // namespace ptxemu
