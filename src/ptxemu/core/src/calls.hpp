// Calls of device functions: return addresses, frames and saved registers, per lane.
//
// Operands of a call: [0] start of its targets in Function::extra (a count, then CallTargets), [1] the address register
// of an indirect call (immediate 1), [2] bytes of the caller's frame, [3] the frame register; of a return: [3].
#pragma once

#include "machine.hpp"

namespace ptxemu {

// Enters the function for the lanes: sets their program counters, except after a fault.
void enter_function(Warp& warp, const Instruction& instruction, u32 lanes, u32 return_to, bool indirect);

// Leaves it again.
void leave_function(Warp& warp, const Instruction& instruction, u32 lanes);

}  // namespace ptxemu
