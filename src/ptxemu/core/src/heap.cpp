#include "heap.hpp"

#include <algorithm>

#include "access.hpp"
#include "checks.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

constexpr u64 kHeapAlignment = 16;

// operand[0]: the address; operand[1]: bytes.
void allocate(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const Launch& launch = *warp.worker->launch;
    for_each_lane(active, [&](int lane) {
        const u64 bytes = warp.lanes<u64>(i.operand[1])[lane], address = launch.heap->allocate(bytes);
        warp.lanes<u64>(i.operand[0])[lane] = address;
        if (launch.checks != nullptr && address != 0) launch.checks->initialized.clear(address, bytes);
    });
}

// operand[1]: the address.
void free_again(Warp& warp, const Instruction& i, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) {
        const u64 address = warp.lanes<u64>(i.operand[1])[lane];
        if (address == 0 || warp.worker->failed() || warp.worker->launch->heap->free(address)) return;
        const std::string message = "free of " + hexadecimal(address) + ", which malloc has not returned or which is free";
        if (BlockChecks* checks = warp.block->checks.get()) checks->memory_fault(warp, i, lane, "use_after_free", message);
        warp.worker->fail(Fault::trap, i, message);
    });
}

}  // namespace

bool DeviceHeap::resize(u64 bytes) {
    if (placed()) return false;
    bytes_ = bytes;
    return true;
}

u64 DeviceHeap::allocate(u64 bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes == 0 || bytes > bytes_) return 0;
    const u64 size = (bytes + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
    const u64 end = begin_ + bytes_, candidate = behind_last_ + size <= end ? behind_last_ : first_fit(size);
    if (candidate + size > end) return 0;
    used_[candidate] = size;
    behind_last_ = std::max(behind_last_, candidate + size);
    return candidate;
}

u64 DeviceHeap::first_fit(u64 size) const {
    u64 candidate = begin_;
    for (const auto& [address, length] : used_) {
        if (candidate + size <= address) break;
        candidate = address + length;
    }
    return candidate;
}

bool DeviceHeap::free(u64 address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_.erase(address) != 0;
}

const std::vector<Operation>& heap_operations() {
    static const std::vector<Operation> table = {
        {kHeapAllocate, Kind::memory, allocate},
        {kHeapFree, Kind::memory, free_again},
    };
    return table;
}

}  // namespace ptxemu
