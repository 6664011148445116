// What the environment of the program asks of the emulator, read once, when the runtime comes up: later it may have been
// blanked, and files may not be opened any more.
#pragma once

#include "types.hpp"

#include <string>

namespace ptxemu {

struct Settings {
    unsigned threads = 1;              // PTXEMU_THREADS: that execute a kernel
    std::string module;                // PTXEMU_MODULE: the assembled program
    std::string loader;                // PTXEMU_LOADER: command that assembles PTX, its words in lines
    int report = -1;                   // PTXEMU_REPORT: descriptor of the file for counts, appended to
    int checks = -1;                   // PTXEMU_CHECKS: likewise, for findings; without it nothing is checked
    bool leaks = false;                // PTXEMU_LEAKS: whether memory that is never freed is a finding
    bool refused = false;              // PTXEMU_REFUSED: whether calls that were refused and overlooked are told
    bool count_everything = false;     // PTXEMU_COUNT: launches outside of profiler marks, too
    u64 most_reported = ~u64{0};       // PTXEMU_MOST_REPORTED: bytes of reports, beyond which none are written
    bool host_functions = true;        // PTXEMU_HOST_FUNCTIONS=0: they fail, as where a process can start no thread
    u64 sample = 0;                    // PTXEMU_SAMPLE: warp instructions of a launch that are enough
    u64 sample_seed = 0;               // PTXEMU_SAMPLE_SEED: which SMs a sample takes; 0 for the first ones
    u64 instruction_limit = ~u64{0};   // PTXEMU_LIMIT: of a warp
    u64 schedule = 0;                  // PTXEMU_SCHEDULE: seed of the order of turns; 0 for the default order

    bool checking() const { return checks >= 0; }

    static const Settings& get();
};

// Appends to a file; nothing where there is none. Of the settings' files what is to be appended counts as reported, even if
// it cannot be written: a reader who is told of it finds out when the file holds something else.
void append_to(int file, const std::string& text);

}  // namespace ptxemu
