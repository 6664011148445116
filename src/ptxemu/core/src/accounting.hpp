// What memory traffic costs: sectors, cache lines, banks, and which bytes of DRAM a launch needs at all.
//
// Model of Hopper's L1/shared unit: 128-byte lines of four 32-byte sectors; global loads allocate in L1, stores write
// through without allocating, atomics and cache-bypassing loads go straight to L2. A request looks up each of its
// lines once. Shared memory has 32 banks of four bytes; a request of 8 bytes per lane is served in half warps, one of
// 16 bytes in quarter warps, and each phase takes as many wavefronts as the busiest bank has distinct words. A request
// in which all lanes read one address is a broadcast: one wavefront. L2 is not modelled beyond the first touch of each
// 32-byte granule.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#include "types.hpp"

namespace ptxemu {

constexpr u32 kSectorBytes = 32;
constexpr u32 kLineBytes = 128;

// Which share of the blocks was executed, and what was counted in it for all of them.
struct Share {
    u64 all, executed;
    u64 scaled(u64 count) const { return static_cast<u64>((static_cast<u128>(count) * all + executed / 2) / executed); }
    bool whole() const { return all == executed; }
};

// Addresses.
struct Segment {
    u64 begin, end;
};

struct MemoryCounters {
    u64 requests = 0, lanes = 0, sectors = 0, ideal_sectors = 0, l1_hit_sectors = 0, l1_shared_sectors = 0, wavefronts = 0;
    // Requests for which some sector was missing, and of the others those for lines that another warp had touched last.
    u64 missed_requests = 0, shared_requests = 0;
    // Of atomics of two bytes in device memory: times that the lanes of a request have to go round to take turns at their
    // words; in shared memory, the most lanes at one address.
    u64 rounds = 0;
    // Of atomics in shared memory: the most lanes in one bank.
    u64 bank_turns = 0;
    void add(const MemoryCounters& other);
};

// How many passes atomics took at each 512 bytes of device memory, which one part of an H200's L2 takes one after the
// other, and at each 128-byte line: a request takes one for each sector, and one more whenever another of its lanes goes
// to the same address. Spans share places, so that the most used one comes out too large by at most the mean of the rest.
class AtomicSpans {
public:
    // The passes of one request, which are its sum over all spans.
    u32 add(const u64* address, u32 active);
    // One of the segments that they went to.
    void mark(u32 segment) {
        if (segments_.size() <= segment) segments_.resize(segment + 1);
        segments_[segment] = true;
    }
    void add(const AtomicSpans& other);
    u64 most() const { return most_of(spans_); }
    u64 most_at_a_line() const { return most_of(lines_); }
    bool went_to(std::size_t segment) const { return segment < segments_.size() && segments_[segment]; }

private:
    static constexpr std::size_t kPlaces = 4096;
    static constexpr u64 kSpanBytes = 512;
    static u64 most_of(const std::vector<u64>& passes);
    static std::size_t place(u64 number) { return number * 0x9e3779b97f4a7c15ull >> 52; }
    void add(u64 sector, u32 passes) {
        if (spans_.empty()) spans_.assign(kPlaces, 0), lines_.assign(kPlaces, 0);
        spans_[place(sector / (kSpanBytes / kSectorBytes))] += passes;
        lines_[place(sector / (kLineBytes / kSectorBytes))] += passes;
    }
    std::vector<u64> spans_, lines_;
    std::vector<bool> segments_;
};

// How many lanes went to each word of four bytes with atomics of two, which a GPU makes of a comparison and exchange of
// the word: each of them has to win once. Words share places.
class SharedWords {
public:
    // The most lanes of a request at one word.
    u32 add(const u64* address, u32 active);
    void add(const SharedWords& other);
    // Of the word with most, less what it shares its place with on the average.
    u64 most() const;

private:
    static constexpr std::size_t kPlaces = 1 << 16;
    std::vector<u32> lanes_;
};

// Which sectors a block asks the L2 for again, told from one line in so many: enough where what is read is large.
class RepeatedReads {
public:
    void clear() { lines_.clear(); }
    // Sectors of a line, one bit each; returns how many that stand for were asked for before.
    u64 add(u64 line, u32 sectors) {
        if (line * 0x9e3779b97f4a7c15ull >> (64 - kShift) != 0) return 0;
        u32& known = lines_[line];
        const u64 again = popcount(known & sectors);
        known |= sectors;
        return again << kShift;
    }

private:
    static constexpr u32 kShift = 6;
    std::unordered_map<u64, u32> lines_;
};

struct Counters {
    std::vector<u64> executed;      // per instruction: warps that executed it
    std::vector<u64> thread_count;  // per instruction: lanes that did
    std::vector<MemoryCounters> memory;
    u64 branches = 0, divergent_branches = 0, barriers = 0;
    u64 l2_read_sectors = 0, l2_write_sectors = 0;
    u64 repeated_read_sectors = 0;  // of those read: by a block that had asked for them before
    AtomicSpans atomics;
    SharedWords words;
    u64 longest_warp = 0;  // instructions of the warp that executed most

    void resize(std::size_t instructions, std::size_t memory_instructions);
    void add(const Counters& other);
    void scale(const Share& share);
};

// Sectored, 4-way set-associative with a hashed index, least recently used.
//
// Warps run one after the other here and together on a GPU. What a warp comes back to has seen the lines of the others
// go by in between: a line that no other warp has touched counts as gone when those brought since, times the warps that
// share the cache against those that have run since, are more than there is room for.
class L1Cache {
public:
    // `warps` share the cache.
    void configure(u32 bytes, u32 warps);
    void invalidate();
    struct Touched {
        bool found;   // the line
        bool shared;  // another warp has touched it last
        u32 hits;     // sectors that were present
    };
    // Marks sectors of a line (one bit each) as present. `warp` is any number of its own.
    Touched access(u64 line, u32 sectors, u32 warp) { return touch(line, sectors, warp); }
    // A store takes a line but brings nothing into it; tells whether the line was there, which Nsight counts as hits.
    bool store(u64 line, u32 warp) { return touch(line, 0, warp).found; }

private:
    struct Line {
        u64 tag = ~0ull;
        u32 last_use = 0;
        u32 valid_sectors = 0;
        u32 warp = 0;
        u32 brought = 0, turn = 0;  // lines brought, and changes of the warp, up to its last use
    };
    Touched touch(u64 line, u32 sectors, u32 warp);
    bool gone(const Line& line) const;

    static constexpr u32 kWays = 4;
    std::vector<Line> lines_;
    u32 sets_ = 0;
    u64 reciprocal_ = 0;  // of sets_, for a remainder without a division
    u32 clock_ = 0;
    u32 warps_ = 1, warp_ = 0, brought_ = 0, turn_ = 0;
};

// One bit per 32-byte granule of some addresses. Takes memory where something was touched.
class GranuleBits {
public:
    explicit GranuleBits(Segment range);
    bool holds(u64 line) const { return (line - first_line_) / 16 < words_; }
    // Sectors of a line, one bit each.
    void mark(u64 line, u32 sectors);
    // Of what lies between two addresses that it holds.
    u64 count(u64 begin, u64 end) const;

private:
    struct Release {
        void operator()(std::atomic<u64>* words) const { std::free(words); }
    };
    u64 first_line_, words_;
    std::unique_ptr<std::atomic<u64>[], Release> bits_;
};

// Which granules of the device's memory a launch has read and written, managed ones among them.
class GranuleMap {
public:
    GranuleMap(Segment device, Segment managed) : read_{device, managed}, written_{device, managed} {}
    // Sectors of a line, one bit each; memory of the host counts for nothing.
    void read(u64 line, u32 sectors) { read_.mark(line, sectors); }
    void write(u64 line, u32 sectors) { written_.mark(line, sectors); }
    // Of what lies between two addresses.
    u64 read_bytes(u64 begin, u64 end) const { return read_.bytes(begin, end); }
    u64 written_bytes(u64 begin, u64 end) const { return written_.bytes(begin, end); }

private:
    struct Both {
        GranuleBits device, managed;
        Both(Segment device, Segment managed) : device(device), managed(managed) {}
        void mark(u64 line, u32 sectors) {
            if (device.holds(line)) return device.mark(line, sectors);
            if (managed.holds(line)) managed.mark(line, sectors);
        }
        u64 bytes(u64 begin, u64 end) const {
            const u64 line = begin / kLineBytes;
            return (device.holds(line) ? device.count(begin, end) : managed.holds(line) ? managed.count(begin, end) : 0) * kSectorBytes;
        }
    };
    Both read_, written_;
};

// Distinct lines of one request in the order of first touch, with the sectors touched in each (one bit each).
struct LineSet {
    u64 line[kLanes];
    u32 sectors[kLanes];
    u32 lines = 0;
    u32 count = 0;  // sectors of all lines

    void add(u64 number, u32 mask) {
        line[lines] = number;
        sectors[lines++] = mask;
        count += popcount(mask);
    }
};

// Where the lanes of a request point. Lanes that take no part must repeat one that does.
struct Span {
    u64 lowest, highest;
    u64 low_bits;  // of all addresses, or-ed
    bool linear, uniform;

    static Span of(const u64* address, u32 bytes);
};

// Lines of contiguous bytes, at most 32 lines.
LineSet lines_between(u64 first, u64 bytes);

LineSet lines_of(const u64* address, const Span& span, u32 bytes);

// Wavefronts of one shared-memory request.
u32 shared_wavefronts(const u64* address, const Span& span, u32 active, u32 bytes);

}  // namespace ptxemu
