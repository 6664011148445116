// What is under way of a block's bulk copies, and how one is executed.
#include "bulk.hpp"

#include <algorithm>

#include "checks.hpp"
#include "device_memory.hpp"
#include "half.hpp"

namespace ptxemu {

void BulkCopies::clear() {
    pending_.clear();
    groups_.clear();
}

template <class Choose>
void BulkCopies::execute(Block& block, Choose choose) {
    const auto moved = [&](const BulkCopy& copy) {
        if (!choose(copy)) return false;
        copy.execute(block.shared.data());
        if (copy.to_shared) {
            complete_transactions(block.shared.data() + copy.barrier, copy.bytes);
            ++block.warps.front().worker->mbarrier_changes;
        }
        if (block.checks) block.checks->moved(copy);
        return true;
    };
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), moved), pending_.end());
}

void BulkCopies::complete(Block& block, u32 barrier) {
    execute(block, [&](const BulkCopy& copy) { return copy.to_shared && copy.barrier == barrier; });
}

void BulkCopies::commit(u32 thread) {
    if (groups_.size() <= thread) groups_.resize(thread + 1);
    const u32 group = ++groups_[thread];
    for (BulkCopy& copy : pending_)
        if (!copy.to_shared && copy.thread == thread && copy.group == 0) copy.group = group;
}

void BulkCopies::wait(Block& block, u32 thread, u32 left) {
    const u32 closed = thread < groups_.size() ? groups_[thread] : 0;
    execute(block, [&](const BulkCopy& copy) {
        return !copy.to_shared && copy.thread == thread && copy.group != 0 && copy.group + left <= closed;
    });
}

void BulkCopies::finish(Block& block) {
    if (block.checks)
        for (const BulkCopy& copy : pending_) block.checks->unfinished(copy);
    execute(block, [](const BulkCopy&) { return true; });
    groups_.clear();
}

const BulkCopy* BulkCopies::disturbed(u64 begin, u64 end, bool writes) const {
    for (const BulkCopy& copy : pending_)
        if (begin < copy.shared + u64{copy.extent()} && copy.shared < end && (writes || copy.to_shared)) return &copy;
    return nullptr;
}

void BulkCopy::move(u8* near, u8* far, u32 count) const {
    u8 *const to = to_shared ? near : far, *const from = to_shared ? far : near;
    reduction == BulkReduction::none ? static_cast<void>(std::memcpy(to, from, count)) : reduce(reduction, type, to, from, count);
}

void BulkCopy::execute(u8* memory) const {
    if (!box) return move(memory + shared, bytes_at(global), bytes);
    const TensorMap& map = box->map;
    const u32 row_bytes = map.row_bytes(), piece = map.pieces == 1 ? row_bytes : 16;
    const int filling = map.fills_nan ? 0xff : 0;
    box->each_row([&](u32 offset, u64 row, u32 first, u32 end) {
        for (u32 begin = 0; begin < row_bytes; begin += piece) {
            u8* const near = memory + swizzled_offset(shared + offset + begin, map.pieces);
            const u32 low = std::clamp(first, begin, begin + piece), high = std::clamp(end, low, begin + piece);
            if (to_shared) {
                std::memset(near, filling, low - begin);
                std::memset(near + (high - begin), filling, begin + piece - high);
            }
            if (low < high) move(near + (low - begin), bytes_at(row + low), high - low);
        }
    });
}

namespace {

template <class T>
T combined(BulkReduction reduction, T before, T value) {
    switch (reduction) {
        case BulkReduction::add: return static_cast<T>(before + value);
        case BulkReduction::min: return std::min(before, value);
        case BulkReduction::max: return std::max(before, value);
        case BulkReduction::inc: return before >= value ? T{0} : static_cast<T>(before + 1);
        case BulkReduction::dec: return before == 0 || before > value ? value : static_cast<T>(before - 1);
        case BulkReduction::and_: return static_cast<T>(before & value);
        case BulkReduction::or_: return static_cast<T>(before | value);
        case BulkReduction::xor_: return static_cast<T>(before ^ value);
        case BulkReduction::none: break;
    }
    return value;
}

template <class T>
T combined_reals(BulkReduction reduction, T before, T value) {
    if (reduction == BulkReduction::add) return before + value;
    return reduction == BulkReduction::min ? std::fmin(before, value) : std::fmax(before, value);
}

template <class T, class Combine>
void each_element(u8* to, const u8* from, u32 bytes, Combine combine) {
    for (u32 at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
        T before, value;
        std::memcpy(&before, to + at, sizeof(T));
        std::memcpy(&value, from + at, sizeof(T));
        const T after = combine(before, value);
        std::memcpy(to + at, &after, sizeof(T));
    }
}

}  // namespace

bool combines(BulkReduction reduction, ElementType type) {
    using E = ElementType;
    const auto among = [&](std::initializer_list<E> types) { return std::find(types.begin(), types.end(), type) != types.end(); };
    switch (reduction) {
        case BulkReduction::none: return true;
        case BulkReduction::add: return among({E::u32_, E::s32_, E::u64_, E::f16_, E::bf16_, E::f32_, E::f64_});
        case BulkReduction::min:
        case BulkReduction::max: return among({E::u32_, E::s32_, E::u64_, E::s64_, E::f16_, E::bf16_});
        case BulkReduction::inc:
        case BulkReduction::dec: return among({E::u32_});
        default: return among({E::u32_, E::s32_, E::u64_, E::s64_});
    }
}

void reduce(BulkReduction reduction, ElementType type, u8* to, const u8* from, u32 bytes) {
    const auto whole = [&](auto zero) {
        using T = decltype(zero);
        each_element<T>(to, from, bytes, [&](T before, T value) { return combined<T>(reduction, before, value); });
    };
    const auto real = [&](auto zero) {
        using T = decltype(zero);
        each_element<T>(to, from, bytes, [&](T before, T value) { return combined_reals<T>(reduction, before, value); });
    };
    switch (type) {
        case ElementType::u8_: return whole(u8{});
        case ElementType::u16_: return whole(u16{});
        case ElementType::u32_: return whole(u32{});
        case ElementType::s32_: return whole(s32{});
        case ElementType::u64_: return whole(u64{});
        case ElementType::s64_: return whole(s64{});
        case ElementType::f32_: return real(f32{});
        case ElementType::f64_: return real(f64{});
        case ElementType::f16_:
            return each_element<f16>(to, from, bytes, [&](f16 before, f16 value) {
                return narrow_f16(combined_reals(reduction, widen(before), widen(value)));
            });
        case ElementType::bf16_:
            return each_element<bf16>(to, from, bytes, [&](bf16 before, bf16 value) {
                return narrow_bf16(combined_reals(reduction, widen(before), widen(value)));
            });
    }
}

}  // namespace ptxemu
