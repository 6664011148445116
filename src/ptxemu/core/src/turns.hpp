// In what order warps and blocks take turns. By default a warp runs until it waits, and a block until it is done: fast,
// and the same for every launch. Blocks of a counted launch that reads results of atomics are under way together where
// the GPU holds them all: they may share out work, and one block would take all of it.
//
// PTXEMU_SCHEDULE names a seed for another order, in which a warp is interrupted after a few instructions and several
// blocks are under way at once, as on a GPU: what nothing orders then comes out otherwise. Where a kernel may look at
// what other blocks do, or adds up floats by atomics, blocks still begin in ascending order: it may rely on that those
// before have begun, and sums depend on the order. Blocks of others begin in an order in which those that are far apart
// in the grid meet, the last first. The order depends on nothing but seed, worker and number of the launch, so that a
// program gives the same bytes every time, unless blocks of several workers race.
#pragma once

#include "types.hpp"

namespace ptxemu {

class Turns {
public:
    Turns() = default;
    Turns(u64 seed, u64 worker) : state_(seed == 0 ? 0 : mixed(seed + kStep * (worker + 1)) | 1) {}

    bool shuffled() const { return state_ != 0; }

    // A number below `count`.
    u32 below(u32 count) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<u32>((state_ >> 32) * count >> 32);
    }

    // Instructions until the next interruption.
    u64 quantum() { return kLeastQuantum + below(kMostQuantum - kLeastQuantum); }

    // Blocks of one worker that are under way at once.
    static constexpr u32 kBlocksAtOnce = 4;

private:
    static constexpr u64 kStep = 0x9E3779B97F4A7C15ull;
    static constexpr u32 kLeastQuantum = 16, kMostQuantum = 144;

    static u64 mixed(u64 z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }

    u64 state_ = 0;
};

}  // namespace ptxemu
