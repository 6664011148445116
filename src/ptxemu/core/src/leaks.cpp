#include "leaks.hpp"

#include <cstdlib>

#include "callers.hpp"
#include "runtime.hpp"

namespace ptxemu {

void Leaks::watch() {
    watching_ = true;
    std::atexit([] { Runtime::instance().leaks.report(); });
}

void Leaks::allocated(u64 address, u64 bytes) {
    if (!watching_ || address == 0) return;
    left_[address] = {bytes, program_callers()};
}

void Leaks::report() const {
    for (const auto& [address, one] : left_) {
        std::string text = "{\"leaked_bytes\": " + std::to_string(one.bytes) + ", \"callers\": [";
        for (const u64& caller : one.callers) text += (&caller == one.callers.data() ? "" : ", ") + std::to_string(caller);
        append_to(Settings::get().checks, text + "]}\n");
    }
}

}  // namespace ptxemu
