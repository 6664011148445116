// What samples of textures and accesses to surfaces share: registers, handles, faults.
//
// Operand 3 is where the list of registers begins in Function::extra: four values, the handle, the layer, three
// coordinates, and what says which level of detail is meant.
#pragma once

#include <string>

#include "access.hpp"
#include "checks.hpp"
#include "operations.hpp"
#include "texture.hpp"

namespace ptxemu {

struct TextureRegisters {
    const u32* list;
    u32 value(int k) const { return list[k]; }
    u32 handle() const { return list[4]; }
    u32 layer() const { return list[5]; }
    u32 coordinate(int axis) const { return list[6 + axis]; }
    // The level of detail, or two gradients with a component for each coordinate.
    u32 detail(int k) const { return list[9 + k]; }
};

inline TextureRegisters registers_of(const Warp& warp, const Instruction& at) {
    return {warp.worker->launch->function->extra.data() + at.operand[3]};
}

// Requests beyond the first are part of it.
class OneRequest {
public:
    OneRequest(Warp& warp, const Instruction& at) : counters_(warp.worker->counters.memory[at.memory]), before_(counters_) {}
    ~OneRequest() {
        if (counters_.requests <= before_.requests + 1) return;
        const u64 times = counters_.requests - before_.requests;
        counters_.lanes = before_.lanes + (counters_.lanes - before_.lanes) / times;
        counters_.requests = before_.requests + 1;
    }

private:
    MemoryCounters& counters_;
    const MemoryCounters before_;
};

inline void fail_texture(Warp& warp, const Instruction& at, int lane, const std::string& message) {
    if (BlockChecks* checks = warp.block->checks.get()) checks->memory_fault(warp, at, lane, "out_of_bounds", message);
    warp.worker->fail(Fault::illegal_address, at, message);
}

// The texture that a lane names, or null after saying that there is none.
inline const Texture* texture_of(Warp& warp, const Instruction& at, int lane, bool surface) {
    const u64 handle = warp.lanes<u64>(registers_of(warp, at).handle())[lane];
    const Texture* found = warp.worker->launch->textures->find(handle);
    if (found != nullptr && found->surface == surface) return found;
    fail_texture(warp, at, lane, std::string(surface ? "no surface" : "no texture") + " has the handle " + hexadecimal(handle));
    return nullptr;
}

// Calls `body` with each texture that lanes name, and these.
template <class Body>
void each_texture(Warp& warp, const Instruction& at, u32 active, bool surface, Body body) {
    const OneRequest one(warp, at);
    const u64* handles = warp.lanes<u64>(registers_of(warp, at).handle());
    for (u32 rest = active; rest != 0 && !warp.worker->failed();) {
        const int first = first_lane(rest);
        u32 same = 0;
        for_each_lane(rest, [&](int lane) { same |= u32{handles[lane] == handles[first]} << lane; });
        rest &= ~same;
        if (const Texture* texture = texture_of(warp, at, first, surface)) body(*texture, same);
    }
}

}  // namespace ptxemu
