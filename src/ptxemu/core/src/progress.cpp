#include "progress.hpp"

#include <atomic>
#include <csignal>

#include "callers.hpp"
#include "runtime.hpp"

namespace ptxemu {
namespace {

std::atomic<const Launch*> executed{nullptr};
std::atomic<const std::vector<Worker>*> executing{nullptr};

// Where a warp is that is having its turn; other threads go on meanwhile, so that this is a glance.
std::string glance(const Launch& launch, const std::vector<Worker>& workers) {
    for (const Worker& worker : workers) {
        const Warp* const warp = worker.running;
        const u32 ready = warp != nullptr ? warp->live & ~warp->waiting : 0;
        if (ready == 0 || warp->pc[first_lane(ready)] >= launch.function->code.size()) continue;
        const Instruction& at = launch.function->code[warp->pc[first_lane(ready)]];
        const SourcePosition& source = launch.module->sources.at(at.source);
        return source.line != 0 ? " at " + source.file.substr(source.file.rfind('/') + 1) + ":" + std::to_string(source.line)
                                : " at PTX line " + std::to_string(at.ptx_line);
    }
    return "";
}

void on_question(int) {
    const Launch* const launch = executed;
    const std::vector<Worker>* const workers = executing;
    const bool in_kernel = launch != nullptr && workers != nullptr;
    report_running(in_kernel ? "kernel " + readable(launch->function->name) + " was executed" + glance(*launch, *workers) : "",
                   program_callers());
    raise(SIGKILL);
}

}  // namespace

Executing::Executing(const Launch& launch, const std::vector<Worker>& workers) {
    executed = &launch;
    executing = &workers;
}

Executing::~Executing() {
    executing = nullptr;
    executed = nullptr;
}

void tell_when_stopped() {
    struct sigaction action {};
    if (sigaction(SIGRTMAX - 3, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
    action.sa_handler = on_question;
    sigaction(SIGRTMAX - 3, &action, nullptr);
}

}  // namespace ptxemu
