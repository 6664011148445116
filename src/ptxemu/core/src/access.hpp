// From addresses in registers to host pointers: windows, bounds, alignment, and the accounting of the request.
#pragma once

#include "machine.hpp"

namespace ptxemu {

enum class Space : u8 { global, shared, local, generic, constant, param };
enum class Op : u8 { load, store, atomic };

// Where a request's lanes point.
enum class Pattern : u8 { fault, linear, uniform, scattered };

struct Access {
    Pattern pattern;
    u8* pointer[kLanes];  // of active lanes; linear and uniform accesses may use pointer[0] alone
};

// A load or store of all 32 lanes whose addresses are contiguous or equal, from `start` on.
struct Regular {
    Pattern pattern;  // linear or uniform, else scattered: then open_access has to look at every lane
    u8* start;
};

// The cheap way for the requests most kernels make most of the time. Only for loads and stores; with the same operands
// as open_access, which accounts for and reports whatever is not regular.
Regular open_regular(Warp& warp, const Instruction& instruction, u32 active, u32 bytes, Op op);

// Reads addresses from operand[4] plus the immediate; Instruction::extra holds the Space.
Access open_access(Warp& warp, const Instruction& instruction, u32 active, u32 bytes, Op op);

// The same with addresses given, for instructions that have two of them. `extent`: bytes that each lane really touches,
// where that may be fewer.
Access open_addresses(Warp& warp, const Instruction& instruction, Space space, const u64* address, u32 active,
                      u32 bytes, Op op, u32 memory, const u32* extent = nullptr);

// An address as people read it.
std::string hexadecimal(u64 value);

// Reads a 32- or 64-bit address register.
void read_addresses(const Warp& warp, u32 operand, bool wide, s64 offset, u64* address);

}  // namespace ptxemu
