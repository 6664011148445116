#include "settings.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

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

std::atomic<u64> reported{0};

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
    settings.host_functions = number_from("PTXEMU_HOST_FUNCTIONS", 1) == 1;
    settings.count_everything = number_from("PTXEMU_COUNT", 0) == 1;
    settings.sample = number_from("PTXEMU_SAMPLE", 0);
    settings.instruction_limit = number_from("PTXEMU_LIMIT", ~u64{0});
    settings.schedule = number_from("PTXEMU_SCHEDULE", 0);
    return settings;
}

}  // namespace

const Settings& Settings::get() {
    // Never destroyed, as the runtime is not, which refers to them.
    static const Settings& settings = *new Settings(read());
    return settings;
}

void append_to(int file, const std::string& text) {
    if (file < 0) return;
    if (file == Settings::get().report || file == Settings::get().checks) reported += text.size();
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t count = ::write(file, text.data() + at, text.size() - at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;  // a full disk: the reader finds a line that is cut off
        at += static_cast<std::size_t>(count);
    }
}

}  // namespace ptxemu

// Descriptors that the emulator goes on writing to, for a process that wants to allow nothing else. Returns their number.
extern "C" __attribute__((visibility("default"))) int ptxemu_descriptors(int* to, int most) {
    int count = 0;
    for (const int file : {ptxemu::Settings::get().report, ptxemu::Settings::get().checks}) {
        if (file >= 0 && count < most) to[count++] = file;
    }
    return count;
}

// Bytes that the emulator has appended to these, or has failed to.
extern "C" __attribute__((visibility("default"))) unsigned long long ptxemu_reported() { return ptxemu::reported; }
