#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime.hpp"

namespace ptxemu {
namespace {

constexpr u64 kPage = 4096;
constexpr u64 kGap = 512;  // between allocations
constexpr u64 kCheckedGap = 1 << 16;

constexpr u8 kPattern = 0xff;
constexpr u64 kPatternBytes = 4 << 20;
constexpr u64 kLeastLazy = 4 * kPatternBytes;

// A file full of what fresh memory holds, to be mapped over and over; -1 where the machine has no such files.
int pattern_file() {
    const int file = memfd_create("ptxemu-fresh-memory", MFD_CLOEXEC);
    if (file < 0) return -1;
    const std::vector<u8> pattern(kPatternBytes, kPattern);
    if (::write(file, pattern.data(), pattern.size()) == static_cast<ssize_t>(pattern.size())) return file;
    ::close(file);
    return -1;
}

u64 rounded(u64 bytes, u64 unit) { return (std::max<u64>(bytes, 1) + unit - 1) / unit * unit; }

bool reserve(u64 address, u64 bytes, int protection) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* const wanted = reinterpret_cast<void*>(address);
    return mmap(wanted, bytes, protection, flags, -1, 0) == wanted;
}

constexpr int kOwnPages = MAP_PRIVATE | MAP_ANONYMOUS;

bool map_over(void* place, u64 bytes, int protection, int flags, int file) {
    return mmap(place, bytes, protection, flags | MAP_FIXED | MAP_NORESERVE, file, 0) == place;
}

}  // namespace

Arena::Arena(u64 bytes, bool checked)
    : capacity_(std::min(bytes, kDeviceSpan)), gap_(checked ? kCheckedGap : kGap), checked_(checked),
      pattern_(pattern_file()) {
    // An address-space limit may forbid the full size: less memory is better than none.
    for (; capacity_ >= 64u << 20; capacity_ /= 2) {
        const u64 places[] = {kDeviceBase, kManagedBase, kDeviceBase + kDeviceShift};
        int done = 0;
        while (done < 3 && reserve(places[done], capacity_, done < 2 ? PROT_NONE : PROT_READ | PROT_WRITE)) ++done;
        if (done == 3) return;
        while (done > 0) munmap(reinterpret_cast<void*>(places[--done]), capacity_);
    }
    std::fprintf(stderr, "ptxcudart: cannot reserve device memory at 0x%llx\n", static_cast<unsigned long long>(kDeviceBase));
    std::abort();
}

u64 Arena::first_fit(const Window& window, u64 size) const {
    u64 candidate = rounded(window.base + gap_, window.unit);
    for (auto next = allocations_.lower_bound(window.base); next != allocations_.end(); ++next) {
        if (candidate + size + gap_ <= next->first) break;
        candidate = rounded(next->first + next->second.size + gap_, window.unit);
    }
    return candidate;
}

// Where much is filled, most of it becomes mappings, of which only pages that are written take memory. Pieces begin at
// multiples of their size, so that the number of mappings is bounded by the arena's.
void Arena::fill(u64 address, u64 bytes, u8 value) const {
    const auto write = [=](u64 begin, u64 end) { std::memset(bytes_at(begin), value, end - begin); };
    const auto map = [=](u64 at) {
        return value == 0 ? map_over(bytes_at(at), kPatternBytes, PROT_READ | PROT_WRITE, kOwnPages, -1)
                          : map_over(bytes_at(at), kPatternBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, pattern_);
    };
    const u64 end = address + bytes;
    const u64 first = rounded(address, kPatternBytes), last = end / kPatternBytes * kPatternBytes;
    const bool mapped = value == 0 || (value == kPattern && pattern_ >= 0);
    if (bytes < kLeastLazy || !mapped) return write(address, end);
    for (u64 at = first; at < last; at += kPatternBytes)
        if (!map(at)) write(at, at + kPatternBytes);
    write(address, first);
    write(last, end);
}

u64 Arena::allocate(u64 bytes, bool managed) {
    if (bytes > capacity_) return 0;
    Window& window = managed ? managed_ : device_;
    const u64 size = rounded(bytes, window.unit), end = window.base + capacity_;
    u64 candidate = rounded(window.base + window.high_water + gap_, window.unit);
    if (!checked_ || candidate + size + gap_ > end) candidate = first_fit(window, size);
    if (candidate + size + gap_ > end || used_ + size > capacity_) return 0;
    if (managed && !map_over(bytes_at(candidate), size, PROT_READ | PROT_WRITE, kOwnPages, -1)) return 0;
    allocations_[candidate] = {bytes, size};
    used_ += size;
    window.high_water = std::max(window.high_water, candidate + size - window.base);
    fill(candidate, bytes, kPattern);
    return candidate;
}

bool Arena::free(u64 address) {
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    const Allocation& one = found->second;
    used_ -= one.size;
    if (managed(address))
        // Refused only where the process has too many mappings: then the host can go on writing there.
        static_cast<void>(map_over(bytes_at(address), one.size, PROT_NONE, kOwnPages, -1));
    else if (one.bytes > 2 * kPage)
        madvise(bytes_at(rounded(address, kPage)), (one.bytes - kPage) / kPage * kPage, MADV_DONTNEED);
    if (checked_) freed_.push_back({address, address + one.bytes});
    incomplete_.erase(address);
    allocations_.erase(found);
    return true;
}

std::optional<Segment> Arena::before(u64 address) const {
    const auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return std::nullopt;
    const auto& [begin, one] = *std::prev(next);
    return Segment{begin, begin + one.bytes};
}

bool Arena::holds(u64 address, u64 bytes) const {
    const std::optional<Segment> found = before(address);
    return found && address + bytes <= found->end;
}

void Arena::set_incomplete(u64 address, bool incomplete) {
    auto holder = allocations_.upper_bound(address);
    if (holder == allocations_.begin()) return;
    --holder;
    if (address >= holder->first + holder->second.size) return;
    if (incomplete)
        incomplete_.insert(holder->first);
    else
        incomplete_.erase(holder->first);
}

bool Arena::incomplete(u64 address) const {
    const auto holder = allocations_.upper_bound(address);
    return holder != allocations_.begin() && incomplete_.count(std::prev(holder)->first) != 0;
}

bool Arena::is_all_of(u64 address, u64 bytes) const {
    const auto found = allocations_.find(address);
    return found != allocations_.end() && found->second.bytes == bytes;
}

std::vector<u8> Arena::incomplete() const {
    std::vector<u8> flags;
    if (incomplete_.empty()) return flags;
    for (const auto& [address, one] : allocations_) flags.push_back(incomplete_.count(address) != 0);
    return flags;
}

u64 Arena::free_bytes() const { return capacity_ - used_; }

Segments Arena::segments() const {
    Segments result;
    for (const auto& [address, one] : allocations_) result.list.push_back({address, address + one.bytes});
    return result;
}

}  // namespace ptxemu
