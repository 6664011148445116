// Stands in for the launcher in a harness program, and calls that of the shared object that was loaded, or of the chosen
// one where several were. The build defines KB_LAUNCHER, the launcher's mangled name, as a string.
#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>

#define KB_HIDDEN __attribute__((visibility("hidden")))

static void no_candidate() { throw std::runtime_error("no candidate was loaded"); }

struct Loaded {
    void* launcher;
    void (*initialise)();
};
static constexpr size_t kMostCandidates = 64;
static Loaded candidates[kMostCandidates];
static size_t candidate_count = 0;

#if defined(__x86_64__)

#include "gate.hpp"

static void set_launcher(void* launcher) { range_state().target = launcher; }

static void call_initialise(const Loaded& candidate) {
    set_launcher(reinterpret_cast<void*>(candidate.initialise));
    kb_gate();
    set_launcher(candidate.launcher);
}

#elif defined(__aarch64__)

extern "C" KB_HIDDEN void* kb_deferred_launcher = reinterpret_cast<void*>(&no_candidate);

// Arguments stay where they are, whatever their types; the register that is used belongs to no argument (procedure call
// standard for AArch64, section 6.4). Nothing protects the harness' memory here.
asm(".text\n.globl " KB_LAUNCHER "\n.type " KB_LAUNCHER ", %function\n" KB_LAUNCHER ":\n"
    "    adrp x16, kb_deferred_launcher\n"
    "    ldr x16, [x16, :lo12:kb_deferred_launcher]\n"
    "    br x16\n"
    ".size " KB_LAUNCHER ", . - " KB_LAUNCHER "\n");

static void set_launcher(void* launcher) { kb_deferred_launcher = launcher; }
static void call_initialise(const Loaded& candidate) {
    candidate.initialise();
    set_launcher(candidate.launcher);
}

#else
#error "no call of a launcher that is loaded late is written for this processor"
#endif

extern "C" {

// Loads the shared object of one more candidate, which runs nothing of it: it has no initialisers that the dynamic
// linker knows of (deferred/candidate.ld). Why it cannot be loaded; null when it was.
KB_HIDDEN const char* kb_load_candidate(const char* path) {
    set_launcher(reinterpret_cast<void*>(&no_candidate));
    if (candidate_count == kMostCandidates) return "too many candidates for one process";
    void* candidate = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (candidate == nullptr) return ::dlerror();
    void* launcher = ::dlsym(candidate, KB_LAUNCHER);
    if (launcher == nullptr) return ::dlerror();
    auto* initialise = reinterpret_cast<void (*)()>(::dlsym(candidate, "kb_initialise"));
    if (initialise == nullptr) return ::dlerror();
    candidates[candidate_count++] = {launcher, initialise};
    return nullptr;
}

KB_HIDDEN size_t kb_candidates() { return candidate_count; }

// Runs the initialisers of a candidate, which is called from here on.
KB_HIDDEN void kb_initialise_candidate(size_t index) { call_initialise(candidates[index]); }

KB_HIDDEN void kb_choose_candidate(size_t index) { set_launcher(candidates[index].launcher); }

}  // extern "C"
