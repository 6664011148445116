// Operations across the lanes of a warp. The scheduler has gathered the members before these run.
//
// Operands: [0] result, [1] source, [2] and [3] further sources, [4] member mask, [5] predicate result.
#include "machine.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

enum class Shuffle { up, down, butterfly, indexed };

template <Shuffle Mode>
void shuffle(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u32 *source = warp.lanes<u32>(i.operand[1]), *offset = warp.lanes<u32>(i.operand[2]),
              *control = warp.lanes<u32>(i.operand[3]);
    u32 copy[kLanes];
    std::memcpy(copy, source, sizeof copy);
    u32* result = warp.lanes<u32>(i.operand[0]);
    pred* in_range = i.flags & kHasResult ? warp.lanes<pred>(i.operand[5]) : nullptr;
    for_each_lane(active, [&](int lane) {
        const int segment = control[lane] >> 8 & 31, clamp = control[lane] & 31, shift = offset[lane] & 31;
        const int lowest = lane & segment, highest = lowest | (clamp & ~segment);
        int from = 0;
        bool inside = false;
        switch (Mode) {
            case Shuffle::up: from = lane - shift, inside = from >= highest; break;
            case Shuffle::down: from = lane + shift, inside = from <= highest; break;
            case Shuffle::butterfly: from = lane ^ shift, inside = from <= highest; break;
            case Shuffle::indexed: from = lowest | (shift & ~segment), inside = from <= highest; break;
        }
        result[lane] = copy[inside ? from : lane];
        if (in_range != nullptr) in_range[lane] = inside ? kTrue : 0;
    });
}

enum class Vote { all, any, uniform, ballot };

template <Vote Mode>
void vote(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u32 ballot = mask_of(warp.lanes<pred>(i.operand[1])) & active;
    const u32* members = warp.lanes<u32>(i.operand[4]);
    u32* result = warp.lanes<u32>(i.operand[0]);
    for_each_lane(active, [&](int lane) {
        const u32 group = members[lane] & active, yes = ballot & group;
        switch (Mode) {
            case Vote::all: result[lane] = yes == group ? kTrue : 0; break;
            case Vote::any: result[lane] = yes != 0 ? kTrue : 0; break;
            case Vote::uniform: result[lane] = yes == group || yes == 0 ? kTrue : 0; break;
            case Vote::ballot: result[lane] = yes; break;
        }
    });
}

template <class T>
void match_any(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const T* source = warp.lanes<T>(i.operand[1]);
    const u32* members = warp.lanes<u32>(i.operand[4]);
    u32 result[kLanes] = {};
    for_each_lane(active, [&](int lane) {
        for_each_lane(members[lane] & active, [&](int other) {
            result[lane] |= u32{source[other] == source[lane]} << other;
        });
    });
    u32* destination = warp.lanes<u32>(i.operand[0]);
    for_each_lane(active, [&](int lane) { destination[lane] = result[lane]; });
}

template <class T>
void match_all(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const T* source = warp.lanes<T>(i.operand[1]);
    const u32* members = warp.lanes<u32>(i.operand[4]);
    u32 result[kLanes] = {};
    for_each_lane(active, [&](int lane) {
        const u32 group = members[lane] & active;
        bool same = true;
        for_each_lane(group, [&](int other) { same = same && source[other] == source[lane]; });
        result[lane] = same ? group : 0;
    });
    u32* destination = warp.lanes<u32>(i.operand[0]);
    for_each_lane(active, [&](int lane) {
        destination[lane] = result[lane];
        if (i.flags & kHasResult) warp.lanes<pred>(i.operand[5])[lane] = result[lane] != 0 ? kTrue : 0;
    });
}

template <class T, class Combine>
void reduce(Warp& warp, const Instruction& i, u32 active, Combine combine) {
    T source[kLanes];
    std::memcpy(source, warp.lanes<T>(i.operand[1]), sizeof source);
    const u32* members = warp.lanes<u32>(i.operand[4]);
    T* destination = warp.lanes<T>(i.operand[0]);
    for_each_lane(active, [&](int lane) {
        const u32 group = members[lane] & active;
        T result = source[first_lane(group)];
        for_each_lane(group & (group - 1), [&](int other) { result = combine(result, source[other]); });
        destination[lane] = result;
    });
}

// The lowest member is elected: its predicate is true, and every lane learns its number.
void elect(Warp& warp, const Instruction& i, u32 active, const pred*) {
    const u32* members = warp.lanes<u32>(i.operand[4]);
    for_each_lane(active, [&](int lane) {
        const int leader = first_lane(members[lane] & active);
        warp.lanes<u32>(i.operand[0])[lane] = static_cast<u32>(leader);
        warp.lanes<pred>(i.operand[5])[lane] = leader == lane ? kTrue : 0;
    });
}

void active_mask(Warp& warp, const Instruction& i, u32 active, const pred*) {
    for_each_lane(active, [&](int lane) { warp.lanes<u32>(i.operand[0])[lane] = active; });
}

void nothing(Warp&, const Instruction&, u32, const pred*) {}

}  // namespace

#define REDUCE(name, T, ...)                                                          \
    {#name, Kind::warp, [](Warp& w, const Instruction& i, u32 active, const pred*) {  \
         reduce<T>(w, i, active, [](T a, T b) -> T { return __VA_ARGS__; });          \
     }},

const std::vector<Operation>& warp_operations() {
    static const std::vector<Operation> table = {
        {"shfl_up_b32", Kind::warp, shuffle<Shuffle::up>},
        {"shfl_down_b32", Kind::warp, shuffle<Shuffle::down>},
        {"shfl_bfly_b32", Kind::warp, shuffle<Shuffle::butterfly>},
        {"shfl_idx_b32", Kind::warp, shuffle<Shuffle::indexed>},
        {"vote_all_pred", Kind::warp, vote<Vote::all>},
        {"vote_any_pred", Kind::warp, vote<Vote::any>},
        {"vote_uni_pred", Kind::warp, vote<Vote::uniform>},
        {"vote_ballot_b32", Kind::warp, vote<Vote::ballot>},
        {"match_any_b32", Kind::warp, match_any<u32>},
        {"match_any_b64", Kind::warp, match_any<u64>},
        {"match_all_b32", Kind::warp, match_all<u32>},
        {"match_all_b64", Kind::warp, match_all<u64>},
        {"elect", Kind::warp, elect},
        {"bar_warp_sync", Kind::warp, nothing},
        {"activemask", Kind::memory, active_mask},
        REDUCE(redux_add_b32, u32, a + b)
        REDUCE(redux_min_s32, s32, a < b ? a : b)
        REDUCE(redux_max_s32, s32, a > b ? a : b)
        REDUCE(redux_min_u32, u32, a < b ? a : b)
        REDUCE(redux_max_u32, u32, a > b ? a : b)
        REDUCE(redux_and_b32, u32, a & b)
        REDUCE(redux_or_b32, u32, a | b)
        REDUCE(redux_xor_b32, u32, a ^ b)
    };
    return table;
}

}  // namespace ptxemu
