// The names under which harness.hpp was known at first. Problems written then include this file.
#pragma once

#include <kernelblaster/harness.hpp>

namespace kb {
using Driver = Harness;
}

#define KB_DRIVER(call) KB_HARNESS(call)
