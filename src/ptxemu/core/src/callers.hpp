// Where in the program's own code a call of the runtime came from.
#pragma once

#include <vector>

#include "types.hpp"

namespace ptxemu {

// Places to which functions of the program would have returned, from its beginning, inner ones first. The first use loads
// a library, which a process that may open nothing must not do.
std::vector<u64> program_callers();

}  // namespace ptxemu
