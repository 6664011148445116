// The heap that malloc() and free() of kernels use: one allocation of device memory, made for the first launch of a
// kernel that calls them. Bounds are those of the whole heap; what these calls cost on a GPU is not counted.
#pragma once

#include <map>
#include <mutex>

#include "types.hpp"

namespace ptxemu {

constexpr char kHeapAllocate[] = "heap_allocate", kHeapFree[] = "heap_free";  // operations

class DeviceHeap {
public:
    u64 bytes() const { return bytes_; }
    bool placed() const { return begin_ != 0; }
    // How large it will be. False when it is too late.
    bool resize(u64 bytes);
    void place(u64 address) { begin_ = behind_last_ = address; }
    // The address of so many bytes, at a multiple of 16; 0 when there is no room.
    u64 allocate(u64 bytes);
    // False when nothing was allocated there.
    bool free(u64 address);

private:
    u64 first_fit(u64 size) const;

    std::mutex mutex_;
    u64 begin_ = 0, bytes_ = 8ull << 20;  // the limit that a GPU starts with
    u64 behind_last_ = 0;                 // where there is room as a rule
    std::map<u64, u64> used_;             // address -> bytes
};

}  // namespace ptxemu
