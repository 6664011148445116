// What kernels do with textures and surfaces: `tex`, `tld4`, `suld`, `sust`.
//
// Operand 3 is where the list of registers begins in Function::extra: four values, the handle, the layer, and three
// coordinates. A warp reads one corner of the footprints of all its lanes after the other; they count as one request.
#include "texture.hpp"

#include <cmath>

#include "access.hpp"
#include "checks.hpp"
#include "half.hpp"
#include "operations.hpp"

namespace ptxemu {
namespace {

constexpr float kWeights = 256.0f;  // a weight has 8 bits behind the point; halves are rounded up, as on an H200
constexpr float kFarthest = 1 << 30;

struct Registers {
    const u32* list;
    u32 value(int k) const { return list[k]; }
    u32 handle() const { return list[4]; }
    u32 layer() const { return list[5]; }
    u32 coordinate(int axis) const { return list[6 + axis]; }
};

Registers registers_of(const Warp& warp, const Instruction& at) {
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

void fail(Warp& warp, const Instruction& at, int lane, const std::string& message) {
    if (BlockChecks* checks = warp.block->checks.get()) checks->memory_fault(warp, at, lane, "out_of_bounds", message);
    warp.worker->fail(Fault::illegal_address, at, message);
}

// The texture that a lane names, or null after saying that there is none.
const Texture* texture_of(Warp& warp, const Instruction& at, int lane, bool surface) {
    const u64 handle = warp.lanes<u64>(registers_of(warp, at).handle())[lane];
    const Texture* found = warp.worker->launch->textures->find(handle);
    if (found != nullptr && found->surface == surface) return found;
    fail(warp, at, lane, std::string(surface ? "no surface" : "no texture") + " has the handle " + hexadecimal(handle));
    return nullptr;
}

// The index that stands for one beyond the edges; -1 for none.
s64 inside(s64 index, s64 extent, Border border) {
    if (index >= 0 && index < extent) return index;
    if (border == Border::zero) return -1;
    if (border == Border::clamp) return index < 0 ? 0 : extent - 1;
    const s64 period = border == Border::wrap ? extent : 2 * extent;
    const s64 at = (index % period + period) % period;
    return at < extent ? at : period - 1 - at;
}

// Where one axis of a footprint lies: an index, the next, and how much of the value is that one's.
struct Along {
    s64 index[2];
    float weight;
};

class Footprint {
public:
    Footprint(const Texture& texture, TextureForm form) : texture_(texture), form_(form) {}

    void place(u32 axis, u32 raw) {
        const s64 extent = static_cast<s64>(texture_.texels.extent[axis]);
        const Border border = texture_.border[axis];
        float at = ptxemu::bits<float>(raw);
        s64 index = static_cast<s32>(raw);
        float weight = 0;
        if (!form_.integers()) {
            if (texture_.normalized_coordinates) at *= static_cast<float>(extent);
            if (spread()) at -= 0.5f;
            at = at >= -kFarthest ? std::min(at, kFarthest) : -kFarthest;
            index = static_cast<s64>(std::floor(at));
            if (spread()) weight = std::floor((at - static_cast<float>(index)) * kWeights + 0.5f) / kWeights;
        }
        along_[axis] = {{inside(index, extent, border), inside(index + 1, extent, border)}, weight};
    }

    bool spread() const { return (texture_.linear_filter && !form_.integers()) || form_.gathers(); }
    u32 corners() const { return spread() ? 1u << form_.axes() : 1; }

    // Address of a corner, 0 when it lies beyond a border of zeros.
    u64 address(u32 corner, u64 layer) const {
        const Texels& texels = texture_.texels;
        u64 at = form_.layered() ? texels.slice(std::min(layer, texels.layers - 1)) : texels.address;
        const u64 stride[] = {texels.bytes(), texels.row_bytes, texels.slice_bytes};
        for (u32 axis = 0; axis < form_.axes(); ++axis) {
            const s64 index = along_[axis].index[corner >> axis & 1];
            if (index < 0) return 0;
            at += static_cast<u64>(index) * stride[axis];
        }
        return at;
    }

    float share(u32 corner) const {
        float share = 1;
        for (u32 axis = 0; axis < form_.axes(); ++axis)
            share *= corner >> axis & 1 ? along_[axis].weight : 1 - along_[axis].weight;
        return share;
    }

private:
    const Texture& texture_;
    TextureForm form_;
    Along along_[3];
};

float as_float(u32 raw) { return bits<float>(raw); }
u32 as_bits(float value) { return bits<u32>(value); }

// A channel as the register gets it; one that the texel lacks is 0, the fourth 1.
u32 channel(const Texture& texture, const u8* texel, int number) {
    const Texels& texels = texture.texels;
    const bool floats = texels.channel == Channel::of_float || texture.normalized_values;
    const u32 bits = texels.bits[number];
    if (bits == 0) return number < 3 ? 0 : floats ? as_bits(1) : 1;
    u32 offset = 0, raw = 0;
    for (int k = 0; k < number; ++k) offset += texels.bits[k] / 8;
    std::memcpy(&raw, texel + offset, bits / 8);
    if (texels.channel == Channel::of_float) return bits == 16 ? as_bits(widen(f16{static_cast<u16>(raw)})) : raw;
    const bool negative = texels.channel == Channel::of_signed;
    if (negative && bits < 32) raw = static_cast<u32>(static_cast<s32>(raw << (32 - bits)) >> (32 - bits));
    if (!texture.normalized_values) return raw;
    const float most = static_cast<float>((1u << (bits - (negative ? 1 : 0))) - 1);
    return as_bits(negative ? std::max(-1.0f, static_cast<float>(static_cast<s32>(raw)) / most) : static_cast<float>(raw) / most);
}

// Lanes of one texture, whose texels are of one size.
class Sampling {
public:
    Sampling(Warp& warp, const Instruction& at, const Texture& texture, u32 lanes)
        : warp_(warp), at_(at), texture_(texture), form_{static_cast<u64>(at.immediate)}, lanes_(lanes) {}

    void run() {
        const Registers registers = registers_of(warp_, at_);
        std::vector<Footprint> footprints(kLanes, Footprint(texture_, form_));
        for_each_lane(lanes_, [&](int lane) {
            for (u32 axis = 0; axis < form_.axes(); ++axis)
                footprints[lane].place(axis, warp_.lanes<u32>(registers.coordinate(static_cast<int>(axis)))[lane]);
        });
        for (u32 corner = 0; corner < footprints[0].corners(); ++corner) {
            alignas(64) u64 address[kLanes] = {};
            u32 held = 0;
            for_each_lane(lanes_, [&](int lane) {
                const u64 layer = form_.layered() ? warp_.lanes<u32>(registers.layer())[lane] : 0;
                address[lane] = footprints[lane].address(corner, layer);
                held |= u32{address[lane] != 0} << lane;
            });
            if (held != 0 && !read(corner, held, address, footprints)) return;
            if (form_.gathers()) continue;
            for_each_lane(lanes_ & ~held, [&](int lane) { add(lane, nullptr, footprints[lane].share(corner)); });
        }
        deliver(registers, footprints[0].spread() && !form_.gathers());
    }

private:
    bool read(u32 corner, u32 held, const u64* address, const std::vector<Footprint>& footprints) {
        const Access access =
            open_addresses(warp_, at_, Space::global, address, held, texture_.texels.bytes(), Op::load, at_.memory);
        if (access.pattern == Pattern::fault) return false;
        for_each_lane(held, [&](int lane) {
            if (form_.gathers())
                values_[lane][gathered(corner)] = channel(texture_, access.pointer[lane], static_cast<int>(form_.component()));
            else
                add(lane, access.pointer[lane], footprints[lane].share(corner));
        });
        return true;
    }

    // Left below, right below, right above, left above.
    static int gathered(u32 corner) { return corner == 2 ? 0 : corner == 3 ? 1 : corner == 1 ? 2 : 3; }

    void add(int lane, const u8* texel, float share) {
        for (int k = 0; k < 4; ++k) {
            const u32 value = texel != nullptr ? channel(texture_, texel, k) : 0;
            values_[lane][k] = value;
            sums_[lane][k] += share * as_float(value);
        }
    }

    void deliver(const Registers& registers, bool weighted) {
        for (int k = 0; k < 4; ++k) {
            u32* const to = warp_.lanes<u32>(registers.value(k));
            for_each_lane(lanes_, [&](int lane) { to[lane] = weighted ? as_bits(sums_[lane][k]) : values_[lane][k]; });
        }
    }

    Warp& warp_;
    const Instruction& at_;
    const Texture& texture_;
    TextureForm form_;
    u32 lanes_;
    u32 values_[kLanes][4] = {};
    float sums_[kLanes][4] = {};
};

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

void sample(Warp& warp, const Instruction& at, u32 active, const pred*) {
    each_texture(warp, at, active, false,
                 [&](const Texture& texture, u32 lanes) { Sampling(warp, at, texture, lanes).run(); });
}

// Accesses of lanes to one surface. Across, coordinates are in bytes.
class SurfaceAccess {
public:
    SurfaceAccess(Warp& warp, const Instruction& at, const Texture& surface)
        : warp_(warp), at_(at), texels_(surface.texels), form_{static_cast<u64>(at.immediate)} {}

    // Addresses of the lanes that access anything; the others lie beyond the edges.
    u32 locate(u32 lanes, u64* address) {
        const Registers registers = registers_of(warp_, at_);
        u32 held = 0;
        for_each_lane(lanes, [&](int lane) {
            address[lane] = of_lane(registers, lane);
            held |= u32{address[lane] != 0} << lane;
        });
        return held;
    }

    u32 bytes() const { return form_.elements() * form_.element_bytes(); }

private:
    u64 of_lane(const Registers& registers, int lane) {
        u64 at = texels_.address;
        const u64 stride[] = {1, texels_.row_bytes, texels_.slice_bytes};
        for (u32 axis = 0; axis < form_.axes(); ++axis) {
            const s64 given = static_cast<s32>(warp_.lanes<u32>(registers.coordinate(static_cast<int>(axis)))[lane]);
            const u64 extent = axis == 0 ? texels_.extent[0] * texels_.bytes() : texels_.extent[axis];
            s64 index = given;
            if (!bounded(lane, index, extent, axis == 0 ? bytes() : 1)) return 0;
            at += static_cast<u64>(index) * stride[axis];
        }
        if (!form_.layered()) return at;
        s64 layer = static_cast<s32>(warp_.lanes<u32>(registers.layer())[lane]);
        return bounded(lane, layer, texels_.layers, 1) ? at + static_cast<u64>(layer) * texels_.slice_bytes : 0;
    }

    // Whether there is such a place, after moving one beyond the edges where that is asked for.
    bool bounded(int lane, s64& index, u64 extent, u64 bytes) {
        const s64 last = static_cast<s64>(extent) - static_cast<s64>(bytes);
        if (index >= 0 && index <= last) return true;
        if (form_.edge() == TextureForm::clamp) index = index < 0 ? 0 : last;
        if (form_.edge() == TextureForm::trap && !warp_.worker->failed())
            fail(warp_, at_, lane, "access to a surface beyond its edge, at " + std::to_string(index) + " of " + std::to_string(extent));
        return form_.edge() == TextureForm::clamp;
    }

    Warp& warp_;
    const Instruction& at_;
    const Texels& texels_;
    TextureForm form_;
};

template <class R>
void read_elements(Warp& warp, const Instruction& at, const Access& access, u32 lanes, u32 held, TextureForm form) {
    const Registers registers = registers_of(warp, at);
    for (u32 k = 0; k < form.elements(); ++k) {
        R* const to = warp.lanes<R>(registers.value(static_cast<int>(k)));
        for_each_lane(lanes, [&](int lane) {
            to[lane] = 0;
            if (held >> lane & 1)
                std::memcpy(&to[lane], access.pointer[lane] + k * form.element_bytes(), form.element_bytes());
        });
    }
}

void surface_load(Warp& warp, const Instruction& at, u32 active, const pred*) {
    each_texture(warp, at, active, true, [&](const Texture& surface, u32 lanes) {
        const TextureForm form{static_cast<u64>(at.immediate)};
        SurfaceAccess where(warp, at, surface);
        alignas(64) u64 address[kLanes] = {};
        const u32 held = where.locate(lanes, address);
        if (warp.worker->failed()) return;
        Access access{Pattern::scattered, {}};
        if (held != 0) access = open_addresses(warp, at, Space::global, address, held, where.bytes(), Op::load, at.memory);
        if (access.pattern == Pattern::fault) return;
        switch (form.element_bytes()) {
            case 8: return read_elements<u64>(warp, at, access, lanes, held, form);
            case 4: return read_elements<u32>(warp, at, access, lanes, held, form);
            default: return read_elements<u16>(warp, at, access, lanes, held, form);
        }
    });
}

template <class R>
void write_elements(Warp& warp, const Instruction& at, const Access& access, u32 held, TextureForm form) {
    const Registers registers = registers_of(warp, at);
    for (u32 k = 0; k < form.elements(); ++k) {
        const R* const from = warp.lanes<R>(registers.value(static_cast<int>(k)));
        for_each_lane(held, [&](int lane) {
            std::memcpy(access.pointer[lane] + k * form.element_bytes(), &from[lane], form.element_bytes());
        });
    }
}

void surface_store(Warp& warp, const Instruction& at, u32 active, const pred*) {
    each_texture(warp, at, active, true, [&](const Texture& surface, u32 lanes) {
        const TextureForm form{static_cast<u64>(at.immediate)};
        SurfaceAccess where(warp, at, surface);
        alignas(64) u64 address[kLanes] = {};
        const u32 held = where.locate(lanes, address);
        if (held == 0 || warp.worker->failed()) return;
        const Access access = open_addresses(warp, at, Space::global, address, held, where.bytes(), Op::store, at.memory);
        if (access.pattern == Pattern::fault) return;
        switch (form.element_bytes()) {
            case 8: return write_elements<u64>(warp, at, access, held, form);
            case 4: return write_elements<u32>(warp, at, access, held, form);
            default: return write_elements<u16>(warp, at, access, held, form);
        }
    });
}

}  // namespace

const std::vector<Operation>& texture_operations() {
    static const std::vector<Operation> table = {
        {"texture_sample", Kind::memory, sample},
        {"surface_load", Kind::memory, surface_load},
        {"surface_store", Kind::memory, surface_store},
    };
    return table;
}

}  // namespace ptxemu
