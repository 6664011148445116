#include "refused_calls.hpp"

#include <cstdlib>

#include "callers.hpp"
#include "runtime.hpp"

namespace ptxemu {
namespace {

constexpr std::size_t kMost = 32;  // different ones that are told

}  // namespace

void RefusedCalls::watch() {
    watching_ = true;
    std::atexit([] { Runtime::instance().refused_calls.report(); });
}

void RefusedCalls::note(const std::string& message) {
    if (!watching_) return;
    std::vector<u64> callers = program_callers();
    for (Call& known : calls_)
        if (known.message == message && known.callers == callers) return void(++known.count);
    if (calls_.size() < kMost) calls_.push_back({message, std::move(callers), 1});
}

void RefusedCalls::report() const {
    for (const Call& one : calls_) report_refused(one.message, one.count, one.callers);
}

}  // namespace ptxemu
