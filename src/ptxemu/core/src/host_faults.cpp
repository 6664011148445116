#include "host_faults.hpp"

#include <csignal>
#include <cstdio>
#include <ucontext.h>

#include "access.hpp"
#include "callers.hpp"
#include "runtime.hpp"

namespace ptxemu {
namespace {

const char* what_was_done(const ucontext_t& at) {
#if defined(__x86_64__)
    constexpr greg_t kWriting = 2;
    return (at.uc_mcontext.gregs[REG_ERR] & kWriting) != 0 ? "wrote to" : "read";
#else
    return "touched";
#endif
}

u64 instruction_of(const ucontext_t& at) {
#if defined(__x86_64__)
    return static_cast<u64>(at.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return at.uc_mcontext.pc;
#else
    return 0;
#endif
}

// Where an address lies among the allocations, which another thread may be changing now.
std::string place_of(u64 address) {
    const std::unique_lock<std::recursive_mutex> lock(runtime().mutex, std::try_to_lock);
    if (!lock.owns_lock()) return "";
    const Arena& arena = runtime().arena;
    const std::optional<Segment> near = arena.before(address);
    if (!near || arena.managed(near->begin) != arena.managed(address)) return ", in no allocation";
    const std::string size = std::to_string(near->end - near->begin);
    if (address < near->end) return ", byte " + std::to_string(address - near->begin) + " of an allocation of " + size;
    return ", " + std::to_string(address - near->end) + " bytes after the end of an allocation of " + size;
}

// The signal's action is the default one again: it kills the process when the instruction is tried once more.
void on_fault(int, siginfo_t* signal, void* context) {
    const u64 address = reinterpret_cast<u64>(signal->si_addr);
    if (!runtime().arena.owns(address)) return;
    const ucontext_t& at = *static_cast<const ucontext_t*>(context);
    const std::string message = std::string("host code ") + what_was_done(at) + " device memory at " +
                                hexadecimal(address) + place_of(address);
    std::fprintf(stderr, "ptxcudart: %s\n", message.c_str());
    report_host_fault(message, runtime().settings.refused ? program_callers(instruction_of(at)) : std::vector<u64>{});
}

}  // namespace

void watch_host_code() {
    struct sigaction action {};
    if (sigaction(SIGSEGV, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;
    sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace ptxemu
