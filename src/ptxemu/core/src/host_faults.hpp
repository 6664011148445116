// Host code that touches memory of the device: a GPU's program is killed by SIGSEGV there, and so is this one, which says
// before which memory that was and where in the program.
#pragma once

namespace ptxemu {

// Takes over SIGSEGV where nobody has. A handler that the program sets later goes before it.
void watch_host_code();

}  // namespace ptxemu
