// Puts itself under the filter, with two reports that one instruction may write (`pinned`) or any (`any`), and prints for
// each attempt what came of it: 0, or an errno.
#include <kernelblaster/syscall_filter.hpp>
#include <sys/uio.h>

#include <cstdio>

extern "C" long pinned_write(int file, const void* bytes, size_t count);
extern "C" const char pinned_written[];
#if defined(__x86_64__)
asm(".text\n.globl pinned_write\n.globl pinned_written\npinned_write:\n    mov $1, %eax\n    syscall\npinned_written:\n    ret\n");
#else
asm(".text\n.globl pinned_write\n.globl pinned_written\npinned_write:\n    mov x8, #64\n    svc #0\npinned_written:\n    ret\n");
#endif

static void tell(const char* what, long result) { std::printf("%s %d\n", what, result < 0 ? errno : 0); }
static void tell_pinned(const char* what, long result) { std::printf("%s %ld\n", what, result < 0 ? -result : 0); }

int main(int, char** arguments) {
    const bool pinned = std::strcmp(arguments[1], "pinned") == 0;
    const int first = ::open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int second = ::open(arguments[3], O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int other = ::open("/dev/null", O_WRONLY);
    void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto begin = reinterpret_cast<uint64_t>(page);
    const uint64_t at = pinned ? reinterpret_cast<uint64_t>(pinned_written) : 0;
    std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
    const kb::SyscallFilter filter({{1, 2}, {first, second}, at}, {1000, 0, 0}, {{begin, begin + 4096}});
    if (const int error = filter.install()) return error;
    iovec piece{const_cast<char*>("v"), 1};
    tell("write first", ::write(first, "w", 1));
    tell("write second", ::write(second, "w", 1));
    tell("writev second", ::writev(second, &piece, 1));
    tell("write other", ::write(other, "w", 1));
    tell_pinned("pinned first", pinned_write(first, "p", 1));
    tell_pinned("pinned second", pinned_write(second, "p", 1));
    tell_pinned("pinned other", pinned_write(other, "p", 1));
    tell("close first", ::close(first));
    tell("close second", ::close(second));
    tell("close socket", ::close(1000));
    tell("close other", ::close(other));
    tell("open page", ::mprotect(page, 4096, PROT_READ | PROT_WRITE));
    tell("drop page", ::munmap(page, 4096));
    std::fflush(stdout);
    ::_exit(0);
}
