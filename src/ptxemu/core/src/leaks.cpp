#include "leaks.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include <cstdlib>

#include "runtime.hpp"

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

void Leaks::watch() {
    watching_ = true;
    std::atexit([] { Runtime::instance().leaks.report(); });
}

void Leaks::allocated(u64 address, u64 bytes) {
    if (!watching_ || address == 0) return;
    Allocation one{bytes, {}};
    void* frames[kDeepest];
    const int count = backtrace(frames, kDeepest);
    for (int k = 0; k < count; ++k) {
        Dl_info place{};
        if (dladdr(frames[k], &place) == 0 || !of_program(place)) continue;
        // The call ends before the place to which it returns.
        one.callers.push_back(static_cast<u64>(static_cast<char*>(frames[k]) - static_cast<char*>(place.dli_fbase)) - 1);
    }
    left_[address] = std::move(one);
}

void Leaks::report() const {
    for (const auto& [address, one] : left_) {
        std::string text = "{\"leaked_bytes\": " + std::to_string(one.bytes) + ", \"callers\": [";
        for (const u64& caller : one.callers) text += (&caller == one.callers.data() ? "" : ", ") + std::to_string(caller);
        append_to(Settings::get().checks, text + "]}\n");
    }
}

}  // namespace ptxemu
