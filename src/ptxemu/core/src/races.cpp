// Shared memory under the checks: reads before any write, and accesses that nothing orders.
#include <algorithm>

#include "checks.hpp"

namespace ptxemu {

bool BlockChecks::ordered(const Mark& earlier, const Mark& now) const {
    if (earlier.clock < start_ || earlier.outside || earlier.thread == now.thread) return true;
    const u32 warp = now.thread / kLanes, from = earlier.thread / kLanes;
    const WarpClock& clock = clocks_[warp];
    if (from != warp) return earlier.clock <= clock.knows[from];
    if (earlier.clock <= clock.floor) return true;
    const u32 pair = now.thread % kLanes * kLanes + earlier.thread % kLanes;
    return !clock.lane_knows.empty() && earlier.clock <= clock.lane_knows[pair];
}

void BlockChecks::race(const char* kind, const char* what, const Mark& earlier, const Mark& now) {
    if (findings_.again(Tool::racecheck, kind, now.at, earlier.at, block_)) return;
    add(Tool::racecheck, kind, now.thread, now.at, earlier.at,
        std::string(what) + " " + name_of(earlier.thread) + " at " + line_of(earlier.at) + ", and nothing orders the two");
}

// Lanes that store at once, or a thread that stores what is there already, disturb nobody.
bool BlockChecks::same_value(const CheckedAccess& access, const Mark& earlier, const Mark& now, u64 at) const {
    if (stored == nullptr || access.op != Op::store) return false;
    const int lane = static_cast<int>(now.thread % kLanes), before = static_cast<int>(earlier.thread % kLanes);
    const u32 granule = launch_checks_.granule;
    const u8* value = stored[lane] + (at - access.address[lane]);
    const u8* there = earlier.request == now.request ? stored[before] + (at - access.address[before])
                                                     : access.warp.block->shared.data() + at;
    return std::memcmp(value, there, granule) == 0;
}

void BlockChecks::read(const CheckedAccess& access, Cell& cell, const Mark& now) {
    const Mark& writer = cell.write;
    const bool strong = now.atomic && writer.atomic;
    if (writer.clock < start_)
        uninitialized(access, now.thread % kLanes, "uninitialized_shared", "shared");
    else if (!strong && !ordered(writer, now))
        race("race_read_after_write", "it reads what was written by", writer, now);
    remember_reader(cell, now);
}

void BlockChecks::remember_reader(Cell& cell, const Mark& now) {
    if (cell.last.thread / kLanes != now.thread / kLanes) {
        cell.other = cell.last;
        cell.lane = {};
    } else if (cell.last.thread != now.thread) {
        cell.lane = cell.last;
    }
    cell.last = now;
}

void BlockChecks::write(const CheckedAccess& access, Cell& cell, const Mark& now, u64 at) {
    const Mark& writer = cell.write;
    if (still_read(cell))
        race("race_write_after_read", "it overwrites what a wgmma still reads for", cell.product, now);
    if (!(writer.atomic && now.atomic) && !ordered(writer, now) && !same_value(access, writer, now, at))
        race("race_write_after_write", "it overwrites what was written by", writer, now);
    for (const Mark* reader : {&cell.last, &cell.lane, &cell.other})
        if (!(reader->atomic && now.atomic) && !ordered(*reader, now))
            race("race_write_after_read", "it overwrites what was read by", *reader, now);
    if (now.atomic && writer.clock < start_)
        uninitialized(access, now.thread % kLanes, "uninitialized_shared", "shared");
    cell.write = now;
}

void BlockChecks::order_by_atomics(u32 warp) {
    WarpClock& clock = clocks_[warp];
    for (std::size_t v = 0; v < by_atomics_.size(); ++v)
        clock.knows[v] = by_atomics_[v] = std::max(by_atomics_[v], clock.knows[v]);
    by_atomics_[warp] = clock.now++;
}

void BlockChecks::learn(const Warp& warp) {
    WarpClock& clock = clocks_[warp.index];
    for (std::size_t v = 0; v < by_atomics_.size(); ++v) clock.knows[v] = std::max(clock.knows[v], by_atomics_[v]);
    clock.knows[engine()] = clocks_[engine()].now - 1;
}

// An access while a copy is under way: whatever happens first, nobody has waited.
void BlockChecks::overtaken(const CheckedAccess& access, const Mark& now, u64 begin, u64 end) {
    const bool writes = access.op != Op::load;
    const BulkCopy* copy = access.warp.block->bulk.disturbed(begin, end, writes);
    if (copy == nullptr) return;
    Mark issued;
    issued.thread = static_cast<u16>(copy->thread);
    issued.at = copy->at;
    if (!writes) return race("race_read_after_write", "it reads what a bulk copy still writes for", issued, now);
    copy->to_shared
        ? race("race_write_after_write", "it overwrites what a bulk copy still writes for", issued, now)
        : race("race_write_after_read", "it overwrites what a bulk copy still reads for", issued, now);
}

// As an access of the thread that issues it, of which no trace is left yet.
void BlockChecks::issued(const Warp& warp, const Instruction& instruction, const BulkCopy& copy) {
    const int lane = static_cast<int>(copy.thread % kLanes);
    u64 address[kLanes];
    address[lane] = copy.global;
    const Op op = copy.to_shared ? Op::load : Op::store;
    const CheckedAccess far{warp, instruction, address, 1u << lane, copy.bytes, op, nullptr};
    if (!copy.inside)
        copy.each_global([&](u64 begin, u64 bytes) {
            address[lane] = begin;
            global({warp, instruction, address, 1u << lane, static_cast<u32>(bytes), op, nullptr}, Pattern::scattered);
        });
    const u32 granule = launch_checks_.granule;
    Mark now;
    now.clock = clocks_[warp.index].now;
    now.at = copy.at;
    now.thread = static_cast<u16>(copy.thread);
    for (u64 at = copy.shared; at < copy.shared + copy.extent(); at += granule) {
        const Cell& cell = cells_[at / granule];
        if (!copy.to_shared) unfenced(cell.write, now);
        if (copy.to_shared && still_read(cell))
            race("race_write_after_read", "the bulk copy overwrites what a wgmma still reads for", cell.product, now);
        if (!copy.to_shared && cell.write.clock < start_) {
            address[lane] = at;
            return uninitialized(far, lane, "uninitialized_shared", "shared");
        }
        if (!ordered(cell.write, now))
            race(copy.to_shared ? "race_write_after_write" : "race_read_after_write", "the bulk copy follows a write of",
                 cell.write, now);
        if (!copy.to_shared) continue;
        for (const Mark* reader : {&cell.last, &cell.lane, &cell.other})
            if (!ordered(*reader, now)) race("race_write_after_read", "the bulk copy overwrites what was read by", *reader, now);
    }
}

// Into shared memory: written by the copy engine, for those who have waited. Out of it: read by the thread that waited.
void BlockChecks::moved(const BulkCopy& copy) {
    const u32 granule = launch_checks_.granule, from = copy.to_shared ? engine() : copy.thread / kLanes;
    Mark now;
    now.clock = clocks_[from].now;
    now.at = copy.at;
    now.request = ++request_;
    now.thread = static_cast<u16>(copy.to_shared ? engine() * kLanes : copy.thread);
    for (u64 at = copy.shared; at < copy.shared + copy.extent(); at += granule) {
        Cell& cell = cells_[at / granule];
        if (copy.to_shared)
            cell = {now, {}, {}, {}, cell.product};
        else
            remember_reader(cell, now);
    }
    if (copy.to_shared) ++clocks_[from].now;
}

void BlockChecks::written_from_outside(u64 offset, u64 bytes) {
    Mark now;
    now.clock = start_;
    now.outside = true;
    const u32 granule = launch_checks_.granule;
    for (u64 at = offset / granule * granule; at < offset + bytes; at += granule) cells_[at / granule] = {now, {}, {}, {}, {}};
}

void BlockChecks::unfinished(const BulkCopy& copy) {
    add(Tool::synccheck, "unfinished_copy", copy.thread, copy.at, kNoInstruction,
        "the block ends, and nobody has waited for this bulk copy " +
            std::string(copy.to_shared ? "into" : "out of") + " its shared memory");
}

// The lanes whose accesses have to be looked at: of a warp that reads one place that another warp has written, in order,
// the first and the last two leave the same marks as all.
u32 BlockChecks::tracked(const CheckedAccess& access, Mark now) const {
    const u32 granule = launch_checks_.granule, all = access.active;
    if (access.op != Op::load || popcount(all) < 4 || !access.warp.block->bulk.empty()) return all;
    const int first = first_lane(all);
    const u64 begin = access.address[first];
    u64 different = 0;
    for (int l = 0; l < kLanes; ++l) different |= access.address[l] ^ begin;
    if (different != 0) return all;
    now.thread = static_cast<u16>(access.warp.index * kLanes + static_cast<u32>(first));
    for (u64 at = begin / granule * granule; at < begin + access.bytes; at += granule) {
        const Mark& writer = cells_[at / granule].write;
        if (writer.clock < start_ || writer.thread / kLanes == access.warp.index || !ordered(writer, now)) return all;
    }
    const u32 last = 31 - static_cast<u32>(__builtin_clz(all)), rest = all & ~(1u << last);
    return 1u << first | 1u << last | 1u << (31 - static_cast<u32>(__builtin_clz(rest)));
}

void BlockChecks::shared(const CheckedAccess& access) {
    const u32 granule = launch_checks_.granule, warp = access.warp.index;
    Mark now;
    now.clock = clocks_[warp].now;
    now.at = index_of(access.instruction);
    now.request = ++request_;
    now.atomic = access.op == Op::atomic || (access.op == Op::load && access.instruction.flags & kBypassL1);
    const bool copying = !access.warp.block->bulk.empty();
    for_each_lane(tracked(access, now), [&](int lane) {
        now.thread = static_cast<u16>(warp * kLanes + static_cast<u32>(lane));
        const u64 begin = access.address[lane] / granule * granule, end = access.address[lane] + access.bytes;
        if (copying) overtaken(access, now, begin, end);
        for (u64 at = begin; at < end; at += granule) {
            Cell& cell = cells_[at / granule];
            access.op == Op::load ? read(access, cell, now) : write(access, cell, now, at);
        }
    });
    if (now.atomic && access.instruction.flags & kHasResult) order_by_atomics(warp);
}

}  // namespace ptxemu
