// Stands in for the launcher in a harness program: it jumps to the launcher of the shared object that was loaded. The
// build defines KB_LAUNCHER, the launcher's mangled name, as a string.
#include <dlfcn.h>

#include <stdexcept>

#define KB_HIDDEN __attribute__((visibility("hidden")))

static void no_candidate() { throw std::runtime_error("no candidate was loaded"); }
static void (*initialise)() = nullptr;

extern "C" {

KB_HIDDEN void* kb_deferred_launcher = reinterpret_cast<void*>(&no_candidate);

// Loads the shared object of a candidate, which runs nothing of it: it has no initialisers that the dynamic linker
// knows of (deferred/candidate.ld). Why it cannot be loaded; null when it was.
KB_HIDDEN const char* kb_load_candidate(const char* path) {
    void* candidate = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (candidate == nullptr) return ::dlerror();
    void* launcher = ::dlsym(candidate, KB_LAUNCHER);
    if (launcher == nullptr) return ::dlerror();
    initialise = reinterpret_cast<void (*)()>(::dlsym(candidate, "kb_initialise"));
    if (initialise == nullptr) return ::dlerror();
    kb_deferred_launcher = launcher;
    return nullptr;
}

KB_HIDDEN void kb_initialise_candidate() { initialise(); }

}  // extern "C"

// Arguments stay where they are, whatever their types; registers that are used belong to no argument (System V ABI for
// x86-64, section 3.2.3; procedure call standard for AArch64, section 6.4).
#if defined(__x86_64__)
asm(".text\n.globl " KB_LAUNCHER "\n.type " KB_LAUNCHER ", @function\n" KB_LAUNCHER ":\n"
    "    endbr64\n"
    "    jmp *kb_deferred_launcher(%rip)\n"
    ".size " KB_LAUNCHER ", . - " KB_LAUNCHER "\n");
#elif defined(__aarch64__)
asm(".text\n.globl " KB_LAUNCHER "\n.type " KB_LAUNCHER ", %function\n" KB_LAUNCHER ":\n"
    "    adrp x16, kb_deferred_launcher\n"
    "    ldr x16, [x16, :lo12:kb_deferred_launcher]\n"
    "    br x16\n"
    ".size " KB_LAUNCHER ", . - " KB_LAUNCHER "\n");
#else
#error "no jump to a launcher that is loaded late is written for this processor"
#endif
