#include <iterator>

#include "runtime.hpp"

namespace ptxemu {

bool HostMemory::holds(u64 address, u64 bytes) const {
    const auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return false;
    const auto [begin, length] = *std::prev(next);
    return address - begin <= length && bytes <= length - (address - begin);
}

void HostMemory::merge_into(Segments& segments, std::vector<u8>& incomplete) const {
    for (const auto& [address, bytes] : ranges_) {
        const auto next = std::find_if(segments.list.begin(), segments.list.end(),
                                       [at = address](const Segment& one) { return one.begin > at; });
        if (!incomplete.empty()) incomplete.insert(incomplete.begin() + (next - segments.list.begin()), u8{0});
        segments.list.insert(next, {address, address + bytes});
    }
}

}  // namespace ptxemu
