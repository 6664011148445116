// What is done to the process between loading a candidate and running the first instruction of it.
#pragma once

#include <fcntl.h>
#include <kernelblaster/last_word.hpp>
#include <kernelblaster/protected_memory.hpp>
#include <kernelblaster/restartable_sequences.hpp>
#include <kernelblaster/syscall_filter.hpp>
#include <sys/auxv.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

extern "C" char** environ;

// Of an emulated GPU's runtime, which tells it once; the real one has no such function.
struct PtxemuReports {
    int files[2];                                 // that it goes on writing to, -1 for none
    unsigned long long written_at;                // behind the one instruction that does; 0 where any may
    unsigned long long begin, end;                // of memory that stays as it is
    const volatile unsigned long long* reported;  // bytes that it has written to them, or would have
};
extern "C" __attribute__((weak)) PtxemuReports ptxemu_reports();

namespace kb {

inline uint64_t reported() { return kept().reported != nullptr ? *kept().reported : 0; }

struct Containment {
    bool contained = false;
    bool memory_protected = false;  // whether the harness' memory is out of the candidate's reach
    double microseconds = 0;
    std::string obstacle;  // why it is not
};

// Blanks the command line and the environment, so that a candidate reads nothing from them.
class ProgramText {
   public:
    ProgramText(int argc, char** argv) : argc_(argc), argv_(argv) {}

    void blank() {
        for (int i = 0; i < argc_; ++i) std::memset(argv_[i], 0, std::strlen(argv_[i]));
        for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
            std::memset(*variable, 0, std::strlen(*variable));
        }
        // The path of the program, beside them.
        if (auto* path = reinterpret_cast<char*>(::getauxval(AT_EXECFN))) std::memset(path, 0, std::strlen(path));
        static char* none[] = {nullptr};
        environ = none;
    }

   private:
    int argc_;
    char** argv_;
};

inline std::string own_mappings() {
    std::string text;
    const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return text;
    std::vector<char> part(size_t{1} << 16);
    for (ssize_t count; (count = ::read(file, part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<size_t>(count));
    }
    ::close(file);
    return text;
}

// Puts the whole process under the system-call filter; from here on it opens and starts nothing.
inline Containment contain(int channel, ProgramText& text) {
    const auto begin = std::chrono::steady_clock::now();
    WritableFiles open{{STDOUT_FILENO, STDERR_FILENO}, {}, 0};
    std::vector<AddressRange> fixed;
    if (ptxemu_reports != nullptr) {  // before anything can fail: it tells whoever asks first
        const PtxemuReports told = ptxemu_reports();
        kept().reported = told.reported;
        for (const int file : told.files) {
            if (file >= 0) open.reports.push_back(file);
        }
        open.reported_at = told.written_at;
        fixed.push_back({told.begin, told.end});
    }
    const std::vector<AddressRange> mapped = fixed_mappings(own_mappings());
    if (mapped.empty()) return {false, false, 0, "/proc/self/maps cannot be read"};
    fixed.insert(fixed.end(), mapped.begin(), mapped.end());
    ReservedSocket socket{channel, 0, 0};
    std::vector<AllowedProtection> allowed;
    const bool gated = kb_protected_memory != nullptr;
    if (gated) {
        const ProtectedMemory own = kb_protected_memory();
        const AddressRange range{own.begin, own.begin + own.bytes};
        fixed.push_back({range.begin - kPageBytes, range.end + kPageBytes});
        socket = {channel, own.receives_at, own.sends_at};
        allowed = {{own.closes_at, range, PROT_NONE}, {own.opens_at, range, PROT_READ | PROT_WRITE}};
    }
    text.blank();
    const int error = SyscallFilter(open, socket, fixed, allowed).install();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (error != 0) return {false, false, took.count(), std::string("seccomp: ") + std::strerror(error)};
    if (gated) kb_close_gate();
    return {true, gated && forbid_restartable_sequences(), took.count(), ""};
}

}  // namespace kb
