// Textures, surfaces and the arrays behind them, as kernels see them.
//
// An array lies row by row, rows at a multiple of 32 bytes: how a GPU orders texels within an array is not known, so that
// sectors of neighbouring rows are counted apart where a GPU may find them in one.
#pragma once

#include <map>
#include <vector>

#include "types.hpp"

namespace ptxemu {

enum class Border : u8 { wrap, clamp, mirror, zero };  // the numbers of cudaTextureAddressMode
enum class Channel : u8 { of_signed, of_unsigned, of_float };

// Texels in memory.
struct Texels {
    u64 address;
    u64 extent[3];  // 1 where there is no such axis
    u64 layers;     // 0 when it has none
    u64 row_bytes, slice_bytes;
    u32 bits[4];  // of each channel; 0 when there is none
    Channel channel;

    u32 bytes() const { return (bits[0] + bits[1] + bits[2] + bits[3]) / 8; }
    // Of the layer, or of the slice of a volume.
    u64 slice(u64 number) const { return address + number * slice_bytes; }
};

struct Texture {
    Texels texels;               // of the base level
    std::vector<Texels> levels;  // of mipmaps, the base first; empty when there are none
    Border border[3];
    float border_colour[4];
    bool linear_filter, normalized_coordinates, normalized_values, surface, cube;
    bool linear_between_levels;
    float level_bias, least_level, most_level;

    const Texels& level(u32 number) const { return levels.empty() ? texels : levels[number]; }
};

// What handles stand for.
class Textures {
public:
    u64 add(const Texture& one) {
        all_[next_] = one;
        return next_++;
    }
    bool remove(u64 handle) { return all_.erase(handle) != 0; }
    const Texture* find(u64 handle) const {
        const auto found = all_.find(handle);
        return found == all_.end() ? nullptr : &found->second;
    }

private:
    // No address of memory looks like these.
    u64 next_ = 5ull << 56 | 1;
    std::map<u64, Texture> all_;
};

// What the immediate of an instruction says of it (see ptx/selection/texture.py).
struct TextureForm {
    static constexpr u64 kLayered = 4, kIntegers = 8, kGather = 16, kLevel = 1 << 20, kGradients = 1 << 21, kCube = 1 << 22;
    u64 bits;
    u32 coordinates() const { return bits & 3; }
    // Of an image: a face of a cube has two.
    u32 axes() const { return cube() ? 2 : coordinates(); }
    bool cube() const { return (bits & kCube) != 0; }
    // Which level of detail is meant: as given, or by how far neighbours lie apart; else the base.
    bool level() const { return (bits & kLevel) != 0; }
    bool gradients() const { return (bits & kGradients) != 0; }
    bool layered() const { return (bits & kLayered) != 0; }
    bool integers() const { return (bits & kIntegers) != 0; }
    bool gathers() const { return (bits & kGather) != 0; }
    u32 component() const { return bits >> 5 & 3; }
    // Of surfaces: elements and their bytes, and what happens beyond the edges.
    enum Edge : u32 { trap, clamp, zero };
    u32 edge() const { return bits >> 8 & 3; }
    u32 elements() const { return bits >> 12 & 7; }
    u32 element_bytes() const { return bits >> 16 & 15; }
};

}  // namespace ptxemu
