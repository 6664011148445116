// How the program ends when something fails while code of a candidate is in it: it says so and exits, then and there. An
// exception would do the same by way of tables and handlers that a candidate can write to, while the harness' memory is
// open. Before that, and in programs without protected memory, failures are exceptions.
#pragma once

#include <kernelblaster/protected_memory.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace kb {

constexpr int kExitError = 3;

class LastWord {
   public:
    // Tells the judge of an error, and ends the process.
    [[noreturn]] virtual void tell(const std::string& name, const std::string& message) = 0;

   protected:
    ~LastWord() = default;
};

// What the program keeps where no candidate can write, if there is such memory: code that it calls depends on these.
struct Kept {
    LastWord* last_word;
    void* helpers;  // parts.hpp
    const volatile unsigned long long* reported;  // containment.hpp
};

inline Kept& kept() {
    static Kept own{};
    return kb_kept != nullptr ? *static_cast<Kept*>(kb_kept()) : own;
}

// Writes a line to the standard error, and ends the process.
[[noreturn]] inline void end_with(const std::string& line) {
    const std::string told = "harness: " + line + "\n";
    ::syscall(SYS_write, STDERR_FILENO, told.data(), told.size());
    ::_exit(kExitError);
}

// Not by the C library's close, at which a thread can be cancelled: a candidate can write to what says that it should be.
inline void close_file(int descriptor) { ::syscall(SYS_close, descriptor); }

}  // namespace kb
