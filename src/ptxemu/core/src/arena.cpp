#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime.hpp"

namespace ptxemu {
namespace {

constexpr u64 kBase = 0x1000000000ull;  // far from where the loader and malloc put things
constexpr u64 kAlignment = 512;         // as cudaMalloc
constexpr u64 kGap = 512;               // unmapped for the program, between allocations
constexpr u64 kCheckedGap = 1 << 16;

constexpr u64 kPatternBytes = 4 << 20;
constexpr u64 kLeastLazy = 4 * kPatternBytes;

// A file full of what fresh memory holds, to be mapped over and over; -1 where the machine has no such files.
int pattern_file() {
    const int file = memfd_create("ptxemu-fresh-memory", MFD_CLOEXEC);
    if (file < 0) return -1;
    const std::vector<u8> pattern(kPatternBytes, 0xff);
    if (::write(file, pattern.data(), pattern.size()) == static_cast<ssize_t>(pattern.size())) return file;
    ::close(file);
    return -1;
}

u64 rounded(u64 bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Arena::Arena(u64 bytes, bool checked)
    : base_(kBase), capacity_(bytes), gap_(checked ? kCheckedGap : kGap), checked_(checked), pattern_(pattern_file()) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* const wanted = reinterpret_cast<void*>(kBase);
    // An address-space limit may forbid the full size: less memory is better than none.
    for (; capacity_ >= 64u << 20; capacity_ /= 2)
        if (mmap(wanted, capacity_, PROT_READ | PROT_WRITE, flags, -1, 0) == wanted) return;
    std::fprintf(stderr, "ptxcudart: cannot reserve device memory at 0x%llx\n", static_cast<unsigned long long>(kBase));
    std::abort();
}

u64 Arena::first_fit(u64 size) const {
    u64 candidate = base_ + gap_;
    for (const auto& [address, length] : allocations_) {
        if (candidate + size + gap_ <= address) break;
        candidate = address + rounded(length) + gap_;
    }
    return candidate;
}

// Large allocations become private mappings of the pattern, of which only pages that are written take memory. Pieces
// begin at multiples of their size, so that the number of mappings is bounded by the arena's.
void Arena::make_fresh(u64 address, u64 bytes) const {
    const auto fill = [](u64 begin, u64 end) { std::memset(reinterpret_cast<void*>(begin), 0xff, end - begin); };
    const u64 end = address + bytes;
    const u64 first = (address + kPatternBytes - 1) / kPatternBytes * kPatternBytes, last = end / kPatternBytes * kPatternBytes;
    if (bytes < kLeastLazy || pattern_ < 0) return fill(address, end);
    const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    for (u64 at = first; at < last; at += kPatternBytes) {
        void* const place = reinterpret_cast<void*>(at);
        if (mmap(place, kPatternBytes, PROT_READ | PROT_WRITE, flags, pattern_, 0) != place) fill(at, at + kPatternBytes);
    }
    fill(address, first);
    fill(last, end);
}

u64 Arena::allocate(u64 bytes) {
    if (bytes > capacity_) return 0;
    const u64 size = rounded(bytes == 0 ? 1 : bytes), end = base_ + capacity_;
    u64 candidate = base_ + high_water_ + gap_;
    if (!checked_ || candidate + size + gap_ > end) candidate = first_fit(size);
    if (candidate + size + gap_ > end) return 0;
    allocations_[candidate] = bytes;
    used_ += size;
    high_water_ = std::max(high_water_, candidate + size - base_);
    make_fresh(candidate, bytes);
    return candidate;
}

bool Arena::free(u64 address) {
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) return false;
    used_ -= rounded(found->second == 0 ? 1 : found->second);
    madvise(reinterpret_cast<void*>((address + 4095) / 4096 * 4096),
            found->second > 8192 ? (found->second - 4096) / 4096 * 4096 : 0, MADV_DONTNEED);
    if (checked_) freed_.push_back({address, address + found->second});
    incomplete_.erase(address);
    allocations_.erase(found);
    return true;
}

bool Arena::holds(u64 address, u64 bytes) const {
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return false;
    --next;
    return address + bytes <= next->first + next->second;
}

void Arena::set_incomplete(u64 address, bool incomplete) {
    auto holder = allocations_.upper_bound(address);
    if (holder == allocations_.begin()) return;
    --holder;
    if (address >= holder->first + rounded(std::max<u64>(holder->second, 1))) return;
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
    return found != allocations_.end() && found->second == bytes;
}

std::vector<u8> Arena::incomplete() const {
    std::vector<u8> flags;
    if (incomplete_.empty()) return flags;
    for (const auto& [address, length] : allocations_) flags.push_back(incomplete_.count(address) != 0);
    return flags;
}

u64 Arena::free_bytes() const { return capacity_ - used_; }

Segments Arena::segments() const {
    Segments result;
    for (const auto& [address, length] : allocations_) result.list.push_back({address, address + length});
    return result;
}

}  // namespace ptxemu
