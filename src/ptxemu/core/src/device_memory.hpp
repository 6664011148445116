// Where the bytes of device memory lie. The program and its kernels know addresses from kDeviceBase on, at which nothing
// can be read or written: host code that tries ends there, as it does beside a GPU. The core has the bytes elsewhere.
#pragma once

#include "types.hpp"

namespace ptxemu {

constexpr u64 kDeviceBase = 0x1000000000ull;  // far from where the loader and malloc put things
constexpr u64 kDeviceSpan = 1ull << 40;       // more than any GPU has
constexpr u64 kManagedBase = kDeviceBase + kDeviceSpan;  // that of managed memory, where it lies for everybody
constexpr u64 kDeviceShift = 1ull << 44;

// An address that kernels use, as a pointer of the core; memory of the host has one address.
inline u8* bytes_at(u64 address) {
    return reinterpret_cast<u8*>(address + (address - kDeviceBase < kDeviceSpan ? kDeviceShift : 0));
}
inline u8* bytes_at(const void* address) { return bytes_at(reinterpret_cast<u64>(address)); }

}  // namespace ptxemu
