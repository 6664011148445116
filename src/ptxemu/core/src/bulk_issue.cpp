// cp.async.bulk and cp.reduce.async.bulk, with and without tensor maps: what is issued, and whether it may be.
//
// Not counted as loads or stores of the load/store unit: the copy engine works between L2 and shared memory. Sectors
// of the L2 and bytes of DRAM are counted where the copy is issued.
//
// Operands of all: [0] address in shared memory (offset in [1]), [3] registers in Function::extra (the mbarrier's address,
// the mask of a multicast, coordinates, offsets), [5] offset of the mbarrier's address. Of plain copies: [2] bytes,
// [4] global address, with the immediate. Of tensors: [4] address of the tensor map, with the immediate. extra: a Form.
#include <algorithm>

#include "checks.hpp"
#include "device_memory.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

constexpr u64 kAlignment = 16;  // of both addresses and of the size
constexpr u64 kTileAlignment = 128;
constexpr u64 kCountedAtOnce = (kLanes - 1) * kLineBytes;  // touches at most as many lines as a LineSet holds

struct Form {
    bool to_shared, multicast, inside, im2col;
    u32 rank, offsets;
    BulkReduction reduction;
    ElementType type;

    static Form of(u32 word) {
        const auto bit = [&](int at) { return (word >> at & 1) != 0; };
        return {bit(0), bit(1), bit(2), bit(3), word >> 4 & 15, word >> 8 & 15, static_cast<BulkReduction>(word >> 16 & 255),
                static_cast<ElementType>(word >> 24)};
    }
};

u32 shared_address(const Warp& warp, u32 operand, bool wide, int lane) {
    return wide ? static_cast<u32>(warp.lanes<u64>(operand)[lane]) : warp.lanes<u32>(operand)[lane];
}

// One lane's copy, from its operands to the blocks that it writes.
class Issue {
public:
    Issue(Warp& warp, const Instruction& instruction, int lane)
        : warp_(warp),
          instruction_(instruction),
          lane_(lane),
          form_(Form::of(instruction.extra)),
          registers_(warp.worker->launch->function->extra.data() + instruction.operand[3]) {
        copy_.to_shared = form_.to_shared;
        copy_.inside = form_.inside;
        copy_.reduction = form_.reduction;
        copy_.type = form_.type;
        copy_.thread = warp.index * kLanes + static_cast<u32>(lane);
        copy_.at = static_cast<u32>(&instruction - warp.worker->launch->function->code.data());
        const bool wide = (instruction.flags & kHasResult) != 0, wide_barrier = (instruction.flags & kWideAddress) != 0;
        copy_.shared = shared_address(warp, instruction.operand[0], wide, lane) + instruction.operand[1];
        if (copy_.to_shared)
            copy_.barrier = shared_address(warp, registers_[0], wide_barrier, lane) + instruction.operand[5];
    }

    void run() {
        if (!(form_.rank != 0 ? describe_box() : describe_bytes()) || copy_.bytes == 0) return;
        if (!form_.multicast) return put(warp_.block->holder(copy_.shared), false);
        const u32 mask = warp_.lanes<u16>(registers_[1])[lane_];
        std::vector<Block*>& blocks = warp_.block->cluster->blocks;
        if (mask >> blocks.size() != 0) return refuse(Fault::illegal_address, "out_of_bounds", "out-of-bounds multicast");
        for_each_lane(mask, [&](int rank) { put(blocks[static_cast<std::size_t>(rank)], true); });
    }

private:
    u64 far_address() const {
        return warp_.lanes<u64>(instruction_.operand[4])[lane_] + static_cast<u64>(instruction_.immediate);
    }

    bool describe_bytes() {
        copy_.global = far_address();
        copy_.bytes = warp_.lanes<u32>(instruction_.operand[2])[lane_];
        if ((copy_.global | copy_.shared | copy_.bytes) % kAlignment != 0 || copy_.barrier % sizeof(u64) != 0)
            return no(Fault::misaligned_address, "misaligned", "misaligned");
        if (!copy_.inside) return true;
        const u32 from = static_cast<u32>(copy_.global);
        Block* const holder = warp_.block->holder(from);
        const u32 offset = from & ((1u << kRankShift) - 1);
        if (holder == nullptr || holder->gone || offset + u64{copy_.bytes} > holder->shared_bytes)
            return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds shared");
        copy_.global = reinterpret_cast<u64>(holder->shared.data()) + offset;
        return true;
    }

    bool describe_box() {
        const u64 at = far_address();
        const u8* const source = map_at(at);
        if (source == nullptr) return false;
        auto box = std::make_shared<TensorBox>();
        std::memcpy(&box->map, source, sizeof box->map);
        copy_.global = at;
        const TensorMap& map = box->map;
        if (at % kTensorMapAlignment != 0 || !map.valid() || map.rank != form_.rank || map.im2col != form_.im2col) {
            const char* what = at % kTensorMapAlignment != 0 ? "misaligned tensor map of a"
                               : !map.valid()                ? "no tensor map where one is expected by a"
                                                             : "tensor map of another rank or mode than that of a";
            return no(Fault::illegal_instruction, "out_of_bounds", what);
        }
        for (u32 d = 0; d < form_.rank; ++d) box->at[d] = warp_.lanes<s32>(registers_[2 + d])[lane_];
        for (u32 d = 0; d < form_.offsets; ++d) box->offsets[d] = warp_.lanes<u16>(registers_[2 + form_.rank + d])[lane_];
        copy_.bytes = map.bytes();
        copy_.type = map.type;
        if (!combines(form_.reduction, map.type))
            return no(Fault::illegal_instruction, "unsupported_reduction",
                      "reduction that the PTX ISA does not list for elements of this tensor map, in a");
        copy_.box = std::move(box);
        // The PTX ISA does not say so; Hopper ends with an illegal instruction, even where all of the box is outside.
        if (s64{copy_.box->at[0]} * map.element_bytes % static_cast<s64>(kAlignment) != 0)
            return no(Fault::illegal_instruction, "misaligned", "innermost coordinate not at a multiple of 16 bytes in a");
        if (!copy_.to_shared && !map.im2col && begins_before(*copy_.box))
            return no(Fault::illegal_instruction, "out_of_bounds",
                      "negative coordinate (a load may begin before the tensor, a store or reduction may not) in a");
        if (copy_.shared % kTileAlignment == 0 && copy_.barrier % sizeof(u64) == 0) return true;
        return no(Fault::misaligned_address, "misaligned", "misaligned");
    }

    // The CUDA programming guide allows negative coordinates of a tile in loads alone. Observed on an H200: stores to
    // {-4, -3} end with an illegal instruction, with and without a swizzle, while loads from there and stores that reach
    // beyond the end do not. That one negative coordinate is enough, and that reductions end so too, is the guide's rule
    // and has not been seen. Im2col boxes, which the guide does not mention, are let through.
    static bool begins_before(const TensorBox& box) {
        return std::any_of(box.at, box.at + box.map.rank, [](s32 coordinate) { return coordinate < 0; });
    }

    // Where the bytes of a tensor map lie, which may be a parameter of the kernel or global memory; null after a failure.
    const u8* map_at(u64 address) {
        const Launch& launch = *warp_.worker->launch;
        const std::vector<u8>& parameters = launch.parameters;
        copy_.global = address;
        if ((address & kWindowMask) == kParamWindow) {
            const u64 offset = address - kParamWindow;
            if (offset < parameters.size() && parameters.size() - offset >= sizeof(TensorMap)) return parameters.data() + offset;
        } else if (const std::size_t found = launch.segments->find(address);
                   found != launch.segments->list.size() && launch.segments->list[found].end - address >= sizeof(TensorMap)) {
            return bytes_at(address);
        }
        no(Fault::illegal_address, "out_of_bounds", "out-of-bounds tensor map of a");
        return nullptr;
    }

    // Gives the copy to the block whose shared memory it uses. A multicast goes to the same place in each of them.
    void put(Block* holder, bool multicast) {
        if (warp_.worker->failed()) return;
        BulkCopy copy = copy_;
        const bool together = copy.to_shared && warp_.block->holder(copy.barrier) == warp_.block->holder(copy.shared);
        if (together || multicast) {
            copy.shared &= (1u << kRankShift) - 1;
            copy.barrier &= (1u << kRankShift) - 1;
        }
        if (!allowed(copy, holder)) return;
        if (!multicast || holder == warp_.block) count(copy);
        if (BlockChecks* checks = warp_.block->checks.get(); checks != nullptr && holder == warp_.block)
            checks->issued(warp_, instruction_, copy);
        holder->bulk.add(copy);
    }

    bool allowed(const BulkCopy& copy, const Block* holder) {
        if (holder == nullptr || holder->gone) return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds cluster");
        const u64 size = holder->shared_bytes;
        if (copy.shared + u64{copy.extent()} > size || copy.barrier + sizeof(u64) > size)
            return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds shared");
        if (copy.inside) return true;
        const Launch& launch = *warp_.worker->launch;
        const std::vector<Segment>& list = launch.segments->list;
        bool held = true, misled = false;
        copy.each_global([&](u64 address, u64 bytes) {
            const std::size_t found = launch.segments->find(address);
            held = held && found != list.size() && list[found].end - address >= bytes;
            misled = misled || (held && copy.to_shared && launch.misleads(instruction_.memory, found));
        });
        if (!held) return no(Fault::illegal_address, "out_of_bounds", "out-of-bounds global");
        return !misled || no(Fault::unsampled, "unsampled", "what a sampled launch has computed in part decides what is executed:");
    }

    void count(const BulkCopy& copy) {
        Worker& worker = *warp_.worker;
        if (!worker.launch->counted || copy.inside) return;
        GranuleMap& granules = *worker.launch->granules;
        copy.each_global([&](u64 address, u64 bytes) {
            for (u64 at = 0; at < bytes; at += kCountedAtOnce) {
                const LineSet set = lines_between(address + at, std::min(kCountedAtOnce, bytes - at));
                for (u32 k = 0; k < set.lines; ++k) {
                    copy.to_shared ? granules.read(set.line[k], set.sectors[k]) : granules.write(set.line[k], set.sectors[k]);
                    if (copy.to_shared)
                        worker.counters.repeated_read_sectors += warp_.block->reads.add(set.line[k], set.sectors[k]);
                }
                (copy.to_shared ? worker.counters.l2_read_sectors : worker.counters.l2_write_sectors) += set.count;
            }
        });
    }

    bool no(Fault fault, const char* kind, const char* what) {
        refuse(fault, kind, what);
        return false;
    }

    void refuse(Fault fault, const char* kind, const char* what) {
        const std::string message = std::string(what) + " bulk copy of " + std::to_string(copy_.bytes) +
                                    " bytes between global " + hexadecimal(copy_.global) + " and shared " +
                                    hexadecimal(copy_.shared);
        if (BlockChecks* checks = warp_.block->checks.get()) checks->memory_fault(warp_, instruction_, lane_, kind, message);
        warp_.worker->fail(fault, instruction_, message);
    }

    Warp& warp_;
    const Instruction& instruction_;
    int lane_;
    Form form_;
    const u32* registers_;
    BulkCopy copy_{};
};

void issue(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) {
        if (!warp.worker->failed()) Issue(warp, instruction, lane).run();
    });
}

void commit(Warp& warp, const Instruction&, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) { warp.block->bulk.commit(warp.index * kLanes + static_cast<u32>(lane)); });
}

void wait(Warp& warp, const Instruction& instruction, u32 active, const pred*) {
    const u32 left = static_cast<u32>(instruction.immediate);
    for_each_lane(active, [&](int lane) {
        warp.block->bulk.wait(*warp.block, warp.index * kLanes + static_cast<u32>(lane), left);
    });
}

}  // namespace

const std::vector<Operation>& bulk_operations() {
    static const std::vector<Operation> table = {
        {"bulk_copy", Kind::memory, issue},
        {"bulk_tensor", Kind::memory, issue},
        {"bulk_commit", Kind::memory, commit},
        {"bulk_wait", Kind::memory, wait},
    };
    return table;
}

}  // namespace ptxemu
