#include "accounting.hpp"

#include <algorithm>

namespace kbemu {
namespace {

constexpr u32 kBanks = 32;
constexpr u32 kBankBytes = 4;

// A small open-addressed set: requests touch at most 32 sectors.
class SmallSet {
public:
    SmallSet() { std::fill(std::begin(slot_), std::end(slot_), ~0ull); }

    bool insert(u64 value) {
        u32 at = static_cast<u32>(value * 0x9e3779b97f4a7c15ull >> 58);
        while (slot_[at] != ~0ull) {
            if (slot_[at] == value) return false;
            at = (at + 1) & 63;
        }
        slot_[at] = value;
        return true;
    }

private:
    u64 slot_[64];
};

// Distinct words per bank among some lanes; the busiest bank decides.
class BankPhase {
public:
    void touch(u64 word) {
        const u32 bank = word % kBanks;
        for (u32 k = 0; k < depth_[bank]; ++k)
            if (word_[bank][k] == word) return;
        word_[bank][depth_[bank]++] = word;
        deepest_ = std::max<u32>(deepest_, depth_[bank]);
    }
    u32 wavefronts() const { return deepest_; }

private:
    u64 word_[kBanks][kBanks];
    u8 depth_[kBanks] = {};
    u32 deepest_ = 0;
};

u32 phase_wavefronts(const u64* address, u32 active, u32 bytes) {
    BankPhase phase;
    for_each_lane(active, [&](int l) {
        for (u64 word = address[l] / kBankBytes; word * kBankBytes < address[l] + bytes; ++word) phase.touch(word);
    });
    return phase.wavefronts();
}

}  // namespace

bool is_broadcast(const u64* address, u32 active) {
    const u64 first = address[first_lane(active)];
    bool same = true;
    for_each_lane(active, [&](int l) { same = same && address[l] == first; });
    return same;
}

void MemoryCounters::add(const MemoryCounters& other) {
    requests += other.requests;
    lanes += other.lanes;
    sectors += other.sectors;
    ideal_sectors += other.ideal_sectors;
    l1_hit_sectors += other.l1_hit_sectors;
    wavefronts += other.wavefronts;
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
    l2_write_sectors += other.l2_write_sectors;
}

void L1Cache::configure(u32 bytes) {
    sets_ = std::max(1u, bytes / kLineBytes / kWays);
    lines_.assign(std::size_t{sets_} * kWays, {});
    clock_ = 0;
}

void L1Cache::invalidate() { std::fill(lines_.begin(), lines_.end(), Line{}); }

namespace {

// Hardware hashes the set index, so that strides of a power of two do not fall into few sets.
u64 set_hash(u64 tag) { return tag * 0x9e3779b97f4a7c15ull >> 32; }

}  // namespace

bool L1Cache::access(u64 sector) {
    const u64 tag = sector / (kLineBytes / kSectorBytes);
    const u32 wanted = 1u << sector % (kLineBytes / kSectorBytes);
    Line* set = &lines_[set_hash(tag) % sets_ * kWays];
    ++clock_;
    Line* oldest = set;
    for (Line* line = set; line < set + kWays; ++line) {
        if (line->tag == tag) {
            line->last_use = clock_;
            const bool hit = line->valid_sectors & wanted;
            line->valid_sectors |= wanted;
            return hit;
        }
        if (line->last_use < oldest->last_use) oldest = line;
    }
    *oldest = {tag, clock_, wanted};
    return false;
}

GranuleMap::GranuleMap(u64 base, u64 bytes)
    : first_sector_(base / kSectorBytes),
      read_(std::make_unique<Words>(bytes / kSectorBytes / 64 + 1)),
      written_(std::make_unique<Words>(bytes / kSectorBytes / 64 + 1)) {}

void GranuleMap::mark(Words& words, u64 sector) {
    const u64 index = sector - first_sector_, bit = 1ull << index % 64;
    std::atomic<u64>& word = words[index / 64];
    if (!(word.load(std::memory_order_relaxed) & bit)) word.fetch_or(bit, std::memory_order_relaxed);
}

u64 GranuleMap::count(const Words& words) {
    u64 granules = 0;
    for (const auto& word : words) granules += static_cast<u64>(__builtin_popcountll(word.load()));
    return granules;
}

SectorSet sectors_of(const u64* address, u32 active, u32 bytes) {
    SectorSet set;
    u64 lowest = ~0ull, highest = 0;
    for_each_lane(active, [&](int l) {
        lowest = std::min(lowest, address[l]);
        highest = std::max(highest, address[l] + bytes - 1);
    });
    constexpr u32 kSectorsPerLine = kLineBytes / kSectorBytes;
    // Aligned to a line, so that four neighbouring bits are one line.
    const u64 first = lowest / kLineBytes * kSectorsPerLine, last = highest / kSectorBytes;
    if (last - first < 64) {
        u64 touched = 0;
        for_each_lane(active, [&](int l) { touched |= 1ull << (address[l] / kSectorBytes - first); });
        for (u64 rest = touched; rest != 0; rest &= rest - 1)
            set.sector[set.count++] = first + static_cast<u64>(__builtin_ctzll(rest));
        const u64 pairs = touched | touched >> 1;
        set.lines = static_cast<u32>(__builtin_popcountll((pairs | pairs >> 2) & 0x1111111111111111ull));
        return set;
    }
    SmallSet sectors, lines;
    for_each_lane(active, [&](int l) {
        const u64 sector = address[l] / kSectorBytes;
        if (set.count != 0 && set.sector[set.count - 1] == sector) return;
        if (!sectors.insert(sector)) return;
        set.sector[set.count++] = sector;
        if (lines.insert(sector / kSectorsPerLine)) ++set.lines;
    });
    return set;
}

u32 shared_wavefronts(const u64* address, u32 active, u32 bytes) {
    if (active == 0) return 0;
    if (is_broadcast(address, active)) return 1;
    if (bytes <= kBankBytes) return phase_wavefronts(address, active, bytes);
    const u32 lanes_per_phase = std::max(1u, kBanks * kBankBytes / bytes);
    u32 wavefronts = 0;
    for (u32 first = 0; first < kLanes; first += lanes_per_phase) {
        const u32 phase = active & (lanes_per_phase == 32 ? kAllLanes : ((1u << lanes_per_phase) - 1) << first);
        if (phase != 0) wavefronts += phase_wavefronts(address, phase, bytes);
    }
    return wavefronts;
}

}  // namespace kbemu
