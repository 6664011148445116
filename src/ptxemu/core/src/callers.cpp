#include "callers.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

namespace ptxemu {
namespace {

constexpr int kDeepest = 24;

bool of_program(const Dl_info& place) {
    static const void* const begin = [] {
        Dl_info own{};
        return dladdr(reinterpret_cast<void*>(getauxval(AT_PHDR)), &own) != 0 ? own.dli_fbase : nullptr;
    }();
    return begin != nullptr && place.dli_fbase == begin;
}

}  // namespace

std::vector<u64> program_callers(u64 interrupted) {
    std::vector<u64> callers;
    void* frames[kDeepest];
    const int count = backtrace(frames, kDeepest);
    for (int k = 0; k < count; ++k) {
        Dl_info place{};
        if (dladdr(frames[k], &place) == 0 || !of_program(place)) continue;
        // A call ends before the place to which it returns.
        const u64 there = reinterpret_cast<u64>(frames[k]), back = there == interrupted ? 0 : 1;
        callers.push_back(there - reinterpret_cast<u64>(place.dli_fbase) - back);
    }
    return callers;
}

}  // namespace ptxemu
