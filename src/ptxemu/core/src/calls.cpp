#include "calls.hpp"

namespace ptxemu {
namespace {

const CallTarget* find_target(const Warp& warp, const Instruction& instruction, u64 address) {
    const u32* list = warp.worker->launch->function->extra.data() + instruction.operand[0];
    const auto* targets = reinterpret_cast<const CallTarget*>(list + 1);
    for (u32 k = 0; k < *list; ++k)
        if (kCodeWindow + 256ull * targets[k].function == address) return &targets[k];
    return nullptr;
}

// Visits offset and width of the registers that a call of the function saves.
template <class Visit>
void for_each_saved(const Warp& warp, u32 start, Visit visit) {
    if (start == 0) return;
    const u32* list = warp.worker->launch->function->extra.data() + start;
    for (u32 k = 0; k < *list; ++k) visit(list[1 + 2 * k], list[2 + 2 * k]);
}

u64 read_lane(const Warp& warp, u32 offset, u32 width, int lane) {
    if (width == 64) return warp.lanes<u64>(offset)[lane];
    return width == 32 ? warp.lanes<u32>(offset)[lane] : warp.lanes<u16>(offset)[lane];
}

void write_lane(const Warp& warp, u32 offset, u32 width, int lane, u64 value) {
    if (width == 64)
        warp.lanes<u64>(offset)[lane] = value;
    else if (width == 32)
        warp.lanes<u32>(offset)[lane] = static_cast<u32>(value);
    else
        warp.lanes<u16>(offset)[lane] = static_cast<u16>(value);
}

}  // namespace

void enter_function(Warp& warp, const Instruction& instruction, u32 lanes, u32 return_to, bool indirect) {
    if (warp.calls.empty()) warp.calls.resize(kLanes);
    const u32* list = warp.worker->launch->function->extra.data() + instruction.operand[0];
    const u32 frame_bytes = instruction.operand[2];
    const u64 limit = warp.worker->launch->function->local_bytes;
    u64* frame = warp.lanes<u64>(instruction.operand[3]);
    for_each_lane(lanes, [&](int lane) {
        const CallTarget* target = reinterpret_cast<const CallTarget*>(list + 1);
        if (indirect) target = find_target(warp, instruction, warp.lanes<u64>(instruction.operand[1])[lane]);
        if (target == nullptr)
            return warp.worker->fail(Fault::illegal_address, instruction, "call through a pointer to no function");
        if (frame[lane] + frame_bytes > limit)
            return warp.worker->fail(Fault::illegal_address, instruction, "stack overflow");
        CallStack& stack = warp.calls[static_cast<u32>(lane)];
        stack.entries.push_back({return_to, frame_bytes, target->saved});
        for_each_saved(warp, target->saved, [&](u32 offset, u32 width) {
            stack.registers.push_back(read_lane(warp, offset, width, lane));
        });
        frame[lane] += frame_bytes;
        warp.pc[lane] = target->entry;
    });
}

void leave_function(Warp& warp, const Instruction& instruction, u32 lanes) {
    u64* frame = warp.lanes<u64>(instruction.operand[3]);
    for_each_lane(lanes, [&](int lane) {
        CallStack& stack = warp.calls[static_cast<u32>(lane)];
        const CallStack::Entry entry = stack.entries.back();
        stack.entries.pop_back();
        u32 count = 0;
        for_each_saved(warp, entry.saved, [&](u32, u32) { ++count; });
        std::size_t next = stack.registers.size() - count;
        for_each_saved(warp, entry.saved, [&](u32 offset, u32 width) {
            write_lane(warp, offset, width, lane, stack.registers[next++]);
        });
        stack.registers.resize(stack.registers.size() - count);
        frame[lane] -= entry.frame_bytes;
        warp.pc[lane] = entry.return_to;
    });
}

}  // namespace ptxemu
