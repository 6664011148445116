// Control flow, clocks, address windows and calls into the system. What changes program counters is done by the
// scheduler, which looks at Kind alone; such operations have no handler of their own.
#include "checks.hpp"
#include "format.hpp"
#include "machine.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

void no_effect(Warp&, const Instruction&, u32, const pred*) {}

// A pause means waiting for others.
void sleep(Warp& warp, const Instruction&, u32, const pred*) { warp.yields = true; }

template <class T>
void read_clock(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u64 now = warp.worker->instructions;
    for_each_lane(active, [&](int lane) { warp.lanes<T>(i.operand[0])[lane] = static_cast<T>(now); });
}

// operand[0]: the call's return value; operand[1], [2]: format and argument pointers of vprintf.
void print(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u64 *format = warp.lanes<u64>(i.operand[1]), *arguments = warp.lanes<u64>(i.operand[2]);
    for_each_lane(active, [&](int lane) {
        warp.lanes<u32>(i.operand[0])[lane] = static_cast<u32>(print_formatted(warp, lane, format[lane], arguments[lane]));
    });
}

// operand[1]: message, [2]: file, [3]: line, [4]: function.
void fail_assertion(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const int lane = first_lane(active);
    const auto text = [&](int k) { return read_string(warp, lane, warp.lanes<u64>(i.operand[k])[lane]); };
    warp.worker->fail(Fault::assertion, i,
                      text(2) + ":" + std::to_string(warp.lanes<u32>(i.operand[3])[lane]) + ": " + text(4) +
                          ": assertion `" + text(1) + "' failed");
}

// operand[1]: a shared or generic address, [2]: rank of the block whose memory is to be named.
template <class T>
void map_to_rank(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u32* rank = warp.lanes<u32>(i.operand[2]);
    for_each_lane(active, [&](int lane) {
        const T address = warp.lanes<T>(i.operand[1])[lane] & ~(T{kRankMask} << kRankShift);
        warp.lanes<T>(i.operand[0])[lane] = address | T{std::min(rank[lane], kRankMask - 1) + 1} << kRankShift;
    });
}

template <class T>
void rank_of(Warp& warp, const Instruction& i, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) {
        const u32 rank = static_cast<u32>(warp.lanes<T>(i.operand[1])[lane] >> kRankShift) & kRankMask;
        warp.lanes<u32>(i.operand[0])[lane] = rank == 0 ? warp.block->rank : rank - 1;
    });
}

// Of the block itself; the cluster's window holds that of each of its blocks.
void in_own_shared(Warp& warp, const Instruction& i, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) {
        const u64 address = warp.lanes<u64>(i.operand[1])[lane];
        const bool own = (address & kWindowMask) == kSharedWindow && warp.block->holder(address) == warp.block;
        warp.lanes<pred>(i.operand[0])[lane] = own ? kTrue : 0;
    });
}

void trap(Warp& warp, const Instruction& i, u32, const pred*) { warp.worker->fail(Fault::trap, i, "trap"); }

void fence_proxies(Warp& warp, const Instruction&, u32 active, const pred*) {
    if (BlockChecks* checks = warp.block->checks.get()) checks->fenced(warp, active);
}

}  // namespace

#define EMU_WINDOW_TEST(name, low)                                                                           \
    {name, Kind::memory, [](Warp& w, const Instruction& i, u32 active, const pred*) {                       \
         for_each_lane(active, [&](int l) {                                                                 \
             const u64 window = w.lanes<u64>(i.operand[1])[l] & kWindowMask;                                \
             w.lanes<pred>(i.operand[0])[l] = window == (low) ? kTrue : 0;                                  \
         });                                                                                                \
     }}

const std::vector<Operation>& control_operations() {
    static const std::vector<Operation> table = {
        {"bra", Kind::branch, no_effect},
        {"exit", Kind::exit, no_effect},
        {"call", Kind::call, no_effect},
        {"ret", Kind::ret, no_effect},
        {"bar_sync", Kind::barrier, no_effect},
        {"nop", Kind::memory, no_effect},
        {"fence_proxy_async", Kind::memory, fence_proxies},
        {"nanosleep", Kind::memory, sleep},
        {"trap", Kind::memory, trap},
        {"clock_b32", Kind::memory, read_clock<u32>},
        {"clock_b64", Kind::memory, read_clock<u64>},
        {"vprintf", Kind::memory, print},
        {"assertfail", Kind::memory, fail_assertion},
        {"mapa_b32", Kind::memory, map_to_rank<u32>},
        {"mapa_b64", Kind::memory, map_to_rank<u64>},
        {"getctarank_b32", Kind::memory, rank_of<u32>},
        {"getctarank_b64", Kind::memory, rank_of<u64>},
        {"isspacep_shared", Kind::memory, in_own_shared},
        EMU_WINDOW_TEST("isspacep_shared_cluster", kSharedWindow),
        EMU_WINDOW_TEST("isspacep_local", kLocalWindow),
        EMU_WINDOW_TEST("isspacep_param", kParamWindow),
        EMU_WINDOW_TEST("isspacep_global", 0),
    };
    return table;
}

}  // namespace ptxemu
