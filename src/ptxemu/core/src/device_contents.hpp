// What the memory of the device held when host code went on: that must still be there when it stops. On a GPU host code
// cannot reach that memory; here it could compute a result for nothing and put it there.
#pragma once

#include <map>
#include <set>

#include "types.hpp"

namespace ptxemu {

class Arena;
class HostMemory;

class DeviceContents {
public:
    // An allocation that the host may write, too.
    void share(u64 address) { shared_.insert(address); }
    void forget(u64 address) { shared_.erase(address); }
    void keep(const Arena& arena, const HostMemory& pinned);
    // The GPU has begun to work. What the host writes into shared memory from now on may depend on results.
    void begun() { begun_ = true; }
    void reset() { begun_ = false, looked_at_ = 0; }

    // Of allocations that are still there, what has changed since.
    struct Changes {
        bool own = false;      // one that the host cannot reach on a GPU
        u64 shared_bytes = 0;  // of those that it may write, and of pinned memory, once the GPU has begun
    };
    Changes changes(const Arena& arena, const HostMemory& pinned) const;

private:
    // Beyond this nobody looks: a program with so much memory computes little of it on the host.
    static constexpr u64 kMostBytes = u64{512} << 20, kMostBytesInAll = u64{16} << 30;
    // The harness' own staging is longer, and so is what no host works through for nothing.
    static constexpr u64 kMostPinnedBytes = u64{8} << 20;

    std::set<u64> shared_;
    std::map<u64, u64> sums_;  // address -> checksum
    u64 looked_at_ = 0;
    bool begun_ = false;
};

}  // namespace ptxemu
