// Device-side printf, and reading text from device memory.
#pragma once

#include <string>

#include "machine.hpp"

namespace ptxemu {

// The NUL-terminated string at a generic address, as lane sees it; cut off at an unmapped byte.
std::string read_string(Warp& warp, int lane, u64 address);

// Prints to stdout as vprintf of the device would. Returns the number of arguments.
int print_formatted(Warp& warp, int lane, u64 format, u64 arguments);

}  // namespace ptxemu
