// Part of every candidate's shared object: runs its constructors, with a command line and an environment that say
// nothing, once the process is contained.
#define KB_HIDDEN __attribute__((visibility("hidden")))

using Initialiser = void (*)(int, char**, char**);

extern "C" {

// What __cxa_atexit is told of whose destructors they are.
KB_HIDDEN void* __dso_handle = &__dso_handle;

extern KB_HIDDEN Initialiser kb_initialisers_begin[];
extern KB_HIDDEN Initialiser kb_initialisers_end[];

__attribute__((visibility("default"))) void kb_initialise() {
    static char name[] = "candidate";
    static char* arguments[] = {name, nullptr};
    static char* environment[] = {nullptr};
    for (Initialiser* one = kb_initialisers_begin; one < kb_initialisers_end; ++one) {
        if (*one != nullptr) (*one)(1, arguments, environment);
    }
}

}  // extern "C"
