// Values and addresses that change from call to call. A perturbation is a 64-bit number that the judge draws; it decides,
// per tensor, a rotation, how many leading elements are altered, and where in its arena the tensor lies:
//
//   x'[i] = a(x[(i + shift) mod n]) for i < cut, else x[(i + shift) mod n]
//
// For floating-point values a(x) = x / 2. `shift` does both, `scale` alters all elements or none and moves nothing,
// `rotate` moves and alters nothing: integers and flags keep their range that way. `mirror` is `shift` for integers in
// known bounds, a(x) = low + high - x, so that what does not depend on their order (a sort, a histogram) changes, too.
// Altered values lie beside the others on the device: copies and memsets suffice for all, and the harness needs no
// kernel of its own.
// Halving is exact but for subnormals, which round to even, as IEEE multiplication does. The judge replays it in
// evaluation/inputs/perturbations.py: keep them equal. Perturbation 0 stands for the values as they lie in the files.
//
// A problem's contract says that tensors begin at multiples of 16 bytes and nothing more. With perturbation 0 the values
// that a process loads first begin at no better one, each at another distance from lines of 128 bytes, those that it
// loads next at multiples of 512 bytes, and so on in turns. Timed calls find all at multiples of 512 bytes, so that no
// time depends on how a tensor happens to lie across lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <kernelblaster/job.hpp>
#include <vector>

namespace kb {

constexpr size_t kGranuleBytes = 16;     // copies between places that are aligned alike are fast
constexpr size_t kSmallTensor = 4096;    // bytes below which any element may come first
constexpr size_t kAddressStep = 512;     // bytes; cudaMalloc aligns no better for what kernels rely on
constexpr size_t kMostLead = 512;        // bytes before a tensor where it is not timed
constexpr size_t kLeastSlack = size_t{64} << 10;
constexpr size_t kMostSlack = size_t{16} << 20;

// What a number of the perturbation decides.
enum class Draw { kShift = 0, kCut = 1, kPlace = 2, kGuard = 3 };

inline uint64_t draw(uint64_t perturbation, size_t tensor, Draw what) {
    uint64_t z = perturbation + 0x9E3779B97F4A7C15ull * (4 * tensor + static_cast<uint64_t>(what) + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Bytes [to, to + bytes) of the tensor come from [from, from + bytes) of its file, altered or not.
struct Piece {
    size_t to, from, bytes;
    bool altered;
};

inline std::vector<Piece> pieces(const Tensor& tensor, size_t index, uint64_t perturbation) {
    const size_t width = tensor.element_bytes, count = tensor.bytes / width;
    if (perturbation == 0 || count == 0 || tensor.change == "fixed") return {{0, 0, tensor.bytes, false}};
    size_t shift = 0, cut = 0;
    if (tensor.change == "scale") {
        cut = draw(perturbation, index, Draw::kCut) % 2 == 1 ? count : 0;
    } else {
        const size_t granule = tensor.bytes >= kSmallTensor ? std::max<size_t>(kGranuleBytes / width, 1) : 1;
        const size_t units = count / granule;
        shift = granule * (draw(perturbation, index, Draw::kShift) % units);
        if (tensor.change != "rotate") cut = granule * (draw(perturbation, index, Draw::kCut) % (units + 1));
    }
    std::vector<Piece> found;
    for (size_t at = 0; at < count;) {
        size_t end = count;
        if (at < cut) end = std::min(end, cut);
        if (at < count - shift) end = std::min(end, count - shift);
        found.push_back({at * width, (at + shift) % count * width, (end - at) * width, at < cut});
        at = end;
    }
    return found;
}

// Offset of a tensor in its arena, which is `slack` bytes longer than the tensor.
inline size_t place(size_t index, uint64_t perturbation, size_t slack) {
    return kAddressStep * (draw(perturbation, index, Draw::kPlace) % (slack / kAddressStep + 1));
}

// Bytes before a tensor where it lies no better than the contract says: an odd multiple of 16.
inline size_t lead_of(size_t index) { return kGranuleBytes * (2 * ((5 * index + 3) % (kMostLead / kGranuleBytes / 2)) + 1); }

inline size_t slack_for(size_t bytes) {
    const size_t slack = std::clamp(bytes / 8, kLeastSlack, kMostSlack);
    return slack - slack % kAddressStep;
}

// Halves floating-point numbers of `mantissa` fraction bits in place. `Bits` is the unsigned integer of their width,
// `special` the least magnitude that stands for no finite number; that of the IEEE formats unless told otherwise.
template <typename Bits>
void halve(char* data, size_t bytes, int mantissa, Bits special = 0) {
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const Bits step = static_cast<Bits>(Bits{1} << mantissa);
    if (special == 0) special = static_cast<Bits>((kSign - 1) & ~(step - 1));
    for (size_t at = 0; at < bytes; at += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, data + at, sizeof bits);
        const Bits size = static_cast<Bits>(bits & ~kSign);
        // Below twice the smallest normal number the bits are linear in the value.
        const Bits rounded = static_cast<Bits>((size >> 1) + ((size & 1) & (size >> 1)));
        const Bits smaller = size < 2 * step ? rounded : static_cast<Bits>(size - step);
        bits = static_cast<Bits>((bits & kSign) | (size >= special ? size : smaller));
        std::memcpy(data + at, &bits, sizeof bits);
    }
}

// Exchanges integers for `sum` minus them in place; arithmetic is modulo the width.
template <typename Bits>
void mirror(char* data, size_t bytes, int64_t sum) {
    for (size_t at = 0; at < bytes; at += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, data + at, sizeof bits);
        bits = static_cast<Bits>(static_cast<Bits>(sum) - bits);
        std::memcpy(data + at, &bits, sizeof bits);
    }
}

inline void halve(char* data, size_t bytes, const std::string& dtype) {
    if (dtype == "float16") return halve<uint16_t>(data, bytes, 10);
    if (dtype == "bfloat16") return halve<uint16_t>(data, bytes, 7);
    if (dtype == "float32") return halve<uint32_t>(data, bytes, 23);
    if (dtype == "float64") return halve<uint64_t>(data, bytes, 52);
    if (dtype == "float8_e5m2") return halve<uint8_t>(data, bytes, 2);
    if (dtype == "float8_e4m3fn") return halve<uint8_t>(data, bytes, 3, 0x7F);  // no infinity, one NaN
    fail("a tensor of type " + dtype + " cannot be halved");
}

// What the judge's `apply_perturbation` does to leading values.
inline void alter(char* data, size_t bytes, const Tensor& tensor) {
    if (tensor.change != "mirror") return halve(data, bytes, tensor.dtype);
    switch (tensor.element_bytes) {
        case 1: return mirror<uint8_t>(data, bytes, tensor.mirror);
        case 2: return mirror<uint16_t>(data, bytes, tensor.mirror);
        case 4: return mirror<uint32_t>(data, bytes, tensor.mirror);
        default: return mirror<uint64_t>(data, bytes, tensor.mirror);
    }
}

}  // namespace kb
