// What kernels do with surfaces: `suld`, `sust`.
#include <cstring>

#include "texture_access.hpp"

namespace ptxemu {
namespace {

// Accesses of lanes to one surface. Across, coordinates are in bytes.
class SurfaceAccess {
public:
    SurfaceAccess(Warp& warp, const Instruction& at, const Texture& surface)
        : warp_(warp), at_(at), texels_(surface.texels), form_{static_cast<u64>(at.immediate)} {}

    // Addresses of the lanes that access anything; the others lie beyond the edges.
    u32 locate(u32 lanes, u64* address) {
        const TextureRegisters registers = registers_of(warp_, at_);
        u32 held = 0;
        for_each_lane(lanes, [&](int lane) {
            address[lane] = of_lane(registers, lane);
            held |= u32{address[lane] != 0} << lane;
        });
        return held;
    }

    u32 bytes() const { return form_.elements() * form_.element_bytes(); }

private:
    u64 of_lane(const TextureRegisters& registers, int lane) {
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
            fail_texture(warp_, at_, lane, "access to a surface beyond its edge, at " + std::to_string(index) + " of " + std::to_string(extent));
        return form_.edge() == TextureForm::clamp;
    }

    Warp& warp_;
    const Instruction& at_;
    const Texels& texels_;
    TextureForm form_;
};

template <class R>
void read_elements(Warp& warp, const Instruction& at, const Access& access, u32 lanes, u32 held, TextureForm form) {
    const TextureRegisters registers = registers_of(warp, at);
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
    const TextureRegisters registers = registers_of(warp, at);
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

const std::vector<Operation>& surface_operations() {
    static const std::vector<Operation> table = {
        {"surface_load", Kind::memory, surface_load},
        {"surface_store", Kind::memory, surface_store},
    };
    return table;
}

}  // namespace ptxemu
