// Takes restartable sequences away from the thread that calls candidates.
//
// The kernel calls whoever has declared one back in the middle of it, when the thread has waited or was preempted there
// (rseq(2)). Declared over code of the C library or of the harness, that would be a candidate's code in the middle of
// the harness, while its memory is open. The C library has registered the thread's area, in which anybody can write; it
// falls back to system calls without one.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

// Of the C library from version 2.35 on; earlier ones register nothing. The size is 0 where the kernel refused.
extern "C" __attribute__((weak)) const ptrdiff_t __rseq_offset;
extern "C" __attribute__((weak)) const unsigned __rseq_size;

namespace kb {

// Whether the area of this thread is not registered any more, nor can be again. Other threads keep theirs: those that
// are just starting would end the process without one. Called when the filter of all threads is installed, which lets a
// thread restrict itself further; this one no more.
inline bool forbid_restartable_sequences() {
#if defined(__x86_64__)
    constexpr uint32_t kSignature = 0x53053053;
#else
    constexpr uint32_t kSignature = 0xd428bc00;
#endif
    constexpr int kUnregister = 1;
    bool gone = &__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0;
    // It is the registered length that must be given: 32 bytes, more where the kernel has more to tell.
    for (uint32_t bytes = 32; bytes <= 1024 && !gone; bytes += 4) {
        char* const area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
        gone = ::syscall(__NR_rseq, area, bytes, kUnregister, kSignature) == 0;
    }
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rseq, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{sizeof code / sizeof *code, code};
    return ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 && gone;
}

}  // namespace kb
