#include "settings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

// write(2) from an instruction of its own, with an errno that is negative.
#if defined(__x86_64__)
#define PTXEMU_WRITE "    endbr64\n    mov $1, %eax\n    syscall\n"
#elif defined(__aarch64__)
#define PTXEMU_WRITE "    mov x8, #64\n    svc #0\n"
#endif
#if defined(PTXEMU_WRITE)
extern "C" __attribute__((visibility("hidden"))) long append_call(int file, const void* bytes, std::size_t count);
extern "C" __attribute__((visibility("hidden"))) const char append_called[];
asm(".text\n"
    ".globl append_call\n.hidden append_call\n.type append_call, %function\n"
    ".globl append_called\n.hidden append_called\n"
    "append_call:\n" PTXEMU_WRITE
    "append_called:\n"
    "    ret\n"
    ".size append_call, . - append_call\n");
#else
static long append_call(int file, const void* bytes, std::size_t count) {
    const ssize_t written = ::write(file, bytes, count);
    return written < 0 ? -errno : written;
}
static constexpr const char* append_called = nullptr;
#endif

namespace ptxemu {
namespace {

u64 number_from(const char* variable, u64 otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

int file_from(const char* variable) {
    const char* path = std::getenv(variable);
    if (path == nullptr) return -1;
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) {
        std::fprintf(stderr, "ptxcudart: %s: %s\n", path, std::strerror(errno));
        std::exit(4);
    }
    return file;
}

alignas(4096) unsigned char own_page[4096];
static_assert(sizeof(Settings) <= sizeof own_page);

volatile unsigned long long reported = 0;

bool is_report(int file) { return file == Settings::get().report || file == Settings::get().checks; }

Settings read() {
    Settings settings;
    const u64 cores = std::max(1u, std::thread::hardware_concurrency());
    settings.threads = static_cast<unsigned>(std::max<u64>(1, number_from("PTXEMU_THREADS", cores)));
    if (const char* path = std::getenv("PTXEMU_MODULE")) settings.module = path;
    if (const char* command = std::getenv("PTXEMU_LOADER")) settings.loader = command;
    settings.report = file_from("PTXEMU_REPORT");
    settings.checks = file_from("PTXEMU_CHECKS");
    settings.leaks = number_from("PTXEMU_LEAKS", 0) == 1;
    settings.refused = number_from("PTXEMU_REFUSED", 0) == 1;
    settings.most_reported = number_from("PTXEMU_MOST_REPORTED", ~u64{0});
    settings.host_functions = number_from("PTXEMU_HOST_FUNCTIONS", 1) == 1;
    settings.count_everything = number_from("PTXEMU_COUNT", 0) == 1;
    settings.sample = number_from("PTXEMU_SAMPLE", 0);
    settings.sample_seed = number_from("PTXEMU_SAMPLE_SEED", 0);
    settings.instruction_limit = number_from("PTXEMU_LIMIT", ~u64{0});
    settings.schedule = number_from("PTXEMU_SCHEDULE", 0);
    return settings;
}

}  // namespace

const Settings& Settings::get() {
    // Never destroyed, as the runtime is not, which refers to them. No pointer leads to them, and nobody changes them.
    static const bool made = [] {
        new (own_page) Settings(read());
        return ::mprotect(own_page, sizeof own_page, PROT_READ) == 0;
    }();
    static_cast<void>(made);
    return *std::launder(reinterpret_cast<const Settings*>(own_page));
}

void append_to(int file, const std::string& text) {
    if (file < 0) return;
    if (is_report(file)) {
        reported = reported + text.size();
        if (reported > Settings::get().most_reported) return;
    }
    for (std::size_t at = 0; at < text.size();) {
        const long count = append_call(file, text.data() + at, text.size() - at);
        if (count == -EINTR) continue;
        if (count <= 0) return;  // a full disk: the reader finds a line that is cut off
        at += static_cast<std::size_t>(count);
    }
}

}  // namespace ptxemu

// What a process that contains a program has to know, so that reports are the emulator's alone. Asked once, before code of
// the program runs: later it tells nothing.
struct PtxemuReports {
    int files[2];                                 // that the emulator appends to, -1 for none
    unsigned long long written_at;                // behind the one instruction that does; 0 where any may
    unsigned long long begin, end;                // of memory that stays as it is: where it keeps what it was told
    const volatile unsigned long long* reported;  // bytes that it has appended, or was not able or allowed to
};
extern "C" PtxemuReports ptxemu_reports() {
    static bool told = false;
    const ptxemu::Settings& settings = ptxemu::Settings::get();
    if (std::exchange(told, true)) return {{-1, -1}, 0, 0, 0, nullptr};
    const auto written_at = reinterpret_cast<unsigned long long>(append_called);
    const auto begin = reinterpret_cast<unsigned long long>(&settings);
    return {{settings.report, settings.checks}, written_at, begin, begin + sizeof ptxemu::own_page, &ptxemu::reported};
}
