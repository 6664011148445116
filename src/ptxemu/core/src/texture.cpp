// What kernels do with textures: `tex`, `tld4`.
//
// A warp reads one corner of the footprints of all its lanes after the other, in one level of detail and then in the next
// where it mixes two; they count as one request.
#include <cmath>
#include <cstring>

#include "half.hpp"
#include "texture_access.hpp"

namespace ptxemu {
namespace {

constexpr float kWeights = 256.0f;  // a weight has 8 bits behind the point; halves are rounded up, as on an H200
constexpr float kFarthest = 1 << 30;
constexpr u64 kFaces = 6;

float in_eighth_bits(float weight) { return std::floor(weight * kWeights + 0.5f) / kWeights; }

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
    Footprint(const Texture& texture, TextureForm form) : texture_(texture), texels_(&texture.texels), form_(form) {}

    void lie_in(const Texels& texels) { texels_ = &texels; }

    void place(u32 axis, u32 raw) {
        const s64 extent = static_cast<s64>(texels_->extent[axis]);
        const Border border = texture_.border[axis];
        float at = ptxemu::bits<float>(raw);
        s64 index = static_cast<s32>(raw);
        float weight = 0;
        if (!form_.integers()) {
            if (texture_.normalized_coordinates) at *= static_cast<float>(extent);
            if (spread()) at -= 0.5f;
            at = at >= -kFarthest ? std::min(at, kFarthest) : -kFarthest;
            index = static_cast<s64>(std::floor(at));
            if (spread()) weight = in_eighth_bits(at - static_cast<float>(index));
        }
        along_[axis] = {{inside(index, extent, border), inside(index + 1, extent, border)}, weight};
    }

    bool spread() const { return (texture_.linear_filter && !form_.integers()) || form_.gathers(); }
    u32 corners() const { return spread() ? 1u << form_.axes() : 1; }

    // Address of a corner in a slice, 0 when it lies beyond a border of its own colour.
    u64 address(u32 corner, u64 slice) const {
        u64 at = texels_->slice(slice);
        const u64 stride[] = {texels_->bytes(), texels_->row_bytes, texels_->slice_bytes};
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
    const Texels* texels_;
    TextureForm form_;
    Along along_[3];
};

// Where a direction meets a cube: a face, and normalized coordinates on it (CUDA C++ Programming Guide, cubemap textures).
struct CubePlace {
    u32 face;
    float across, down;
};

CubePlace meets_cube(float x, float y, float z) {
    const float far_x = std::fabs(x), far_y = std::fabs(y), far_z = std::fabs(z);
    const auto on = [](u32 face, float s, float t, float far) { return CubePlace{face, (s / far + 1) / 2, (t / far + 1) / 2}; };
    if (far_x >= far_y && far_x >= far_z) return x >= 0 ? on(0, -z, -y, far_x) : on(1, z, -y, far_x);
    if (far_y >= far_z) return y >= 0 ? on(2, x, z, far_y) : on(3, x, -z, far_y);
    return z >= 0 ? on(4, x, -y, far_z) : on(5, -x, -y, far_z);
}

// The level of detail that a value comes from, and how much of it is the next level's.
struct Detail {
    u32 level;
    float next;
};

Detail detail_of(const Texture& texture, float wanted) {
    const u32 last = static_cast<u32>(texture.levels.size() - 1);
    const float bounded = std::min(std::max(wanted + texture.level_bias, texture.least_level), texture.most_level);
    const float at = bounded > 0 ? std::min(bounded, static_cast<float>(last)) : 0;
    if (!texture.linear_between_levels) return {static_cast<u32>(at + 0.5f), 0};
    const u32 level = static_cast<u32>(at);
    return {level, level < last ? in_eighth_bits(at - static_cast<float>(level)) : 0};
}

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
        : warp_(warp), at_(at), texture_(texture), form_{static_cast<u64>(at.immediate)}, lanes_(lanes),
          registers_(registers_of(warp, at)) {}

    void run() {
        u32 mixed = 0;
        for_each_lane(lanes_, [&](int lane) {
            if (!texture_.levels.empty()) detail_[lane] = detail_of(texture_, wanted(lane));
            mixed |= u32{detail_[lane].next != 0} << lane;
        });
        if (!add_level(lanes_, 0) || (mixed != 0 && !add_level(mixed, 1))) return;
        deliver(Footprint(texture_, form_).spread() || texture_.linear_between_levels);
    }

private:
    u32 raw(u32 list, int lane) const { return warp_.lanes<u32>(list)[lane]; }
    float coordinate(int axis, int lane) const { return as_float(raw(registers_.coordinate(axis), lane)); }

    // The level of detail that a lane asks for.
    float wanted(int lane) const {
        if (form_.level()) return as_float(raw(registers_.detail(0), lane));
        if (!form_.gradients()) return 0;
        float longest = 0;
        for (int direction = 0; direction < 2; ++direction) {
            float square = 0;
            for (u32 axis = 0; axis < form_.axes(); ++axis) {
                const u32 which = direction * form_.coordinates() + axis;
                const float texels = as_float(raw(registers_.detail(static_cast<int>(which)), lane)) *
                                     static_cast<float>(texture_.texels.extent[axis]);
                square += texels * texels;
            }
            longest = std::max(longest, std::sqrt(square));
        }
        return std::log2(longest);
    }

    // The slice that a lane reads, and where on it its footprint lies.
    u64 place(Footprint& footprint, int lane) const {
        const u64 layer = form_.layered() ? raw(registers_.layer(), lane) : 0, layers = texture_.texels.layers;
        if (form_.cube()) {
            const CubePlace on = meets_cube(coordinate(0, lane), coordinate(1, lane), coordinate(2, lane));
            footprint.place(0, as_bits(on.across));
            footprint.place(1, as_bits(on.down));
            return std::min(layer, layers / kFaces - 1) * kFaces + on.face;
        }
        for (u32 axis = 0; axis < form_.axes(); ++axis)
            footprint.place(axis, raw(registers_.coordinate(static_cast<int>(axis)), lane));
        return form_.layered() ? std::min(layer, layers - 1) : 0;
    }

    // Adds what lanes read from their level of detail, or from the next. False after a fault.
    bool add_level(u32 lanes, u32 next) {
        std::vector<Footprint> footprints(kLanes, Footprint(texture_, form_));
        u64 slice[kLanes] = {};
        for_each_lane(lanes, [&](int lane) {
            footprints[lane].lie_in(texture_.level(detail_[lane].level + next));
            slice[lane] = place(footprints[lane], lane);
        });
        const auto share = [&](int lane, u32 corner) {
            const float of_level = next ? detail_[lane].next : 1 - detail_[lane].next;
            return footprints[lane].share(corner) * of_level;
        };
        for (u32 corner = 0; corner < footprints[0].corners(); ++corner) {
            alignas(64) u64 address[kLanes] = {};
            u32 held = 0;
            for_each_lane(lanes, [&](int lane) {
                address[lane] = footprints[lane].address(corner, slice[lane]);
                held |= u32{address[lane] != 0} << lane;
            });
            if (held != 0 && !read(corner, held, address, share)) return false;
            for_each_lane(lanes & ~held, [&](int lane) { take(lane, corner, nullptr, share(lane, corner)); });
        }
        return true;
    }

    template <class Share>
    bool read(u32 corner, u32 held, const u64* address, Share share) {
        const Access access =
            open_addresses(warp_, at_, Space::global, address, held, texture_.texels.bytes(), Op::load, at_.memory);
        if (access.pattern == Pattern::fault) return false;
        for_each_lane(held, [&](int lane) { take(lane, corner, access.pointer[lane], share(lane, corner)); });
        return true;
    }

    // A texel, or null for the border.
    void take(int lane, u32 corner, const u8* texel, float share) {
        const auto value = [&](int k) {
            return texel != nullptr ? channel(texture_, texel, k) : as_bits(texture_.border_colour[k]);
        };
        if (form_.gathers()) {
            values_[lane][gathered(corner)] = value(static_cast<int>(form_.component()));
            return;
        }
        for (int k = 0; k < 4; ++k) {
            values_[lane][k] = value(k);
            sums_[lane][k] += share * as_float(values_[lane][k]);
        }
    }

    // Left below, right below, right above, left above.
    static int gathered(u32 corner) { return corner == 2 ? 0 : corner == 3 ? 1 : corner == 1 ? 2 : 3; }

    void deliver(bool weighted) {
        for (int k = 0; k < 4; ++k) {
            u32* const to = warp_.lanes<u32>(registers_.value(k));
            const bool sum = weighted && !form_.gathers();
            for_each_lane(lanes_, [&](int lane) { to[lane] = sum ? as_bits(sums_[lane][k]) : values_[lane][k]; });
        }
    }

    Warp& warp_;
    const Instruction& at_;
    const Texture& texture_;
    TextureForm form_;
    u32 lanes_;
    TextureRegisters registers_;
    Detail detail_[kLanes] = {};
    u32 values_[kLanes][4] = {};
    float sums_[kLanes][4] = {};
};

void sample(Warp& warp, const Instruction& at, u32 active, const pred*) {
    const bool cube = TextureForm{static_cast<u64>(at.immediate)}.cube();
    each_texture(warp, at, active, false, [&](const Texture& texture, u32 lanes) {
        if (cube == texture.cube) return Sampling(warp, at, texture, lanes).run();
        fail_texture(warp, at, first_lane(lanes), cube ? "no cube map where one is sampled" : "a cube map is sampled as an image");
    });
}

}  // namespace

const std::vector<Operation>& texture_operations() {
    static const std::vector<Operation> table = {
        {"texture_sample", Kind::memory, sample},
    };
    return table;
}

}  // namespace ptxemu
