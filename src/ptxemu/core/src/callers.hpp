// Where in the program's own code a call of the runtime came from.
#pragma once

#include <vector>

#include "types.hpp"

namespace ptxemu {

// Places to which functions of the program would have returned, from its beginning, inner ones first. The first use loads
// a library, which a process that may open nothing must not do.
// `interrupted`: where a signal has interrupted the program, if one has.
std::vector<u64> program_callers(u64 interrupted = 0);

}  // namespace ptxemu
