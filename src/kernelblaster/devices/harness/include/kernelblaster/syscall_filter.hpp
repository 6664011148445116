// The system-call filter under which a candidate's host code runs: what compute, allocation and the CUDA driver need
// goes through, everything else fails with EPERM. It holds for every thread of the process, and cannot be taken off.
//
// Opening, sockets, processes, threads, signals and executable memory are refused outright. Some calls are let
// through by their arguments:
//   write, writev             to the standard streams; of an emulator's reports: from its own instruction alone
//   close                     of all but the socket to the judge and an emulator's reports
//   read, recvmsg, sendmsg    of the socket to the judge: from the harness' own instructions alone (protected_memory.hpp)
//   mmap, mprotect            never executable
//   ... and munmap, mremap, madvise, mmap with MAP_FIXED    never on what is mapped from files when the filter is
//                             installed and is not writable: code, constants, relocated pointers of all libraries
//   mprotect                  of the harness' own memory from its gate alone (protected_memory.hpp)
//   tgkill                    to abort
// Measured on Linux 6.18 with driver 580: with the context up, one launch and one asynchronous allocation done, this
// is enough for launches, graphs, clusters, cooperative launches, tensor maps, textures, managed and pinned memory,
// CUB, thrust and kernel printf. cudaLaunchHostFunc fails: it would start a thread.
#pragma once

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace kb {

struct AddressRange {
    uint64_t begin, end;
};

// Mappings of files that are not writable, from the text of /proc/self/maps: lines such as
// `7f00-7f10 r-xp 00000000 fe:01 123  /usr/lib/libc.so.6`. Adjacent ones are joined.
inline std::vector<AddressRange> fixed_mappings(const std::string& maps) {
    std::vector<AddressRange> found;
    for (size_t at = 0; at < maps.size();) {
        const size_t stop = std::min(maps.find('\n', at), maps.size());
        const std::string line = maps.substr(at, stop - at);
        at = stop + 1;
        char* rest = nullptr;
        const uint64_t begin = std::strtoull(line.c_str(), &rest, 16);
        if (rest == nullptr || *rest != '-') continue;
        const uint64_t end = std::strtoull(rest + 1, &rest, 16);
        const bool writable = rest[0] == ' ' && rest[2] == 'w';
        const bool named = line.find('/') != std::string::npos || line.find("[vdso]") != std::string::npos;
        if (writable || !named) continue;
        if (!found.empty() && found.back().end == begin) {
            found.back().end = end;
        } else {
            found.push_back({begin, end});
        }
    }
    return found;
}

// An mprotect that is let through although its range is fixed: with these arguments, from one instruction.
struct AllowedProtection {
    uint64_t instruction;  // the address behind it
    AddressRange range;
    uint32_t protection;
};

// A socket that is read and written by two instructions alone; where both are 0, by any.
struct ReservedSocket {
    int descriptor;
    uint64_t receives_at, sends_at;  // the addresses behind them
};

// Files that may be written to, beside the socket.
struct WritableFiles {
    std::vector<int> streams;
    std::vector<int> reports;  // never closed, and written from one instruction
    uint64_t reported_at;      // the address behind it; 0 for any
};

class SyscallFilter {
   public:
    // `fixed`: ranges whose mapping nobody may change,
    // but for `allowed`.
    SyscallFilter(const WritableFiles& files, const ReservedSocket& socket, const std::vector<AddressRange>& fixed,
                  const std::vector<AllowedProtection>& allowed = {}) {
        load(offsetof(seccomp_data, arch));
        unless(BPF_JEQ, kArchitecture, SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        when(BPF_JGE, 0x40000000u, SECCOMP_RET_KILL_PROCESS);  // the x32 numbers of the same calls
#endif
        for (const long number : plain_calls()) when(BPF_JEQ, static_cast<uint32_t>(number), SECCOMP_RET_ALLOW);
        closes(files.reports, socket.descriptor);
        writes(__NR_write, files);
        writes(__NR_writev, files);
        serves(__NR_sendmsg, socket.descriptor, socket.sends_at, kRefused);
        serves(__NR_recvmsg, socket.descriptor, socket.receives_at, SECCOMP_RET_ALLOW);
        serves(__NR_read, socket.descriptor, socket.receives_at == 0 ? 0 : kNowhere, SECCOMP_RET_ALLOW);
        controls();
        aborts();
        for (const AllowedProtection& one : allowed) protects(one);
        mappings(fixed);
        give(kRefused);
    }

    // Installs the filter for all threads. An errno, or 0.
    int install() const {
        sock_fprog program{static_cast<unsigned short>(code_.size()), const_cast<sock_filter*>(code_.data())};
        if (code_.size() > BPF_MAXINSNS) return E2BIG;
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
        const long failed = ::syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
        if (failed > 0) return EBUSY;  // the thread of that number could not be brought under it
        return failed == 0 ? 0 : errno;
    }

    size_t length() const { return code_.size(); }

   private:
#if defined(__x86_64__)
    static constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    static constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "no system-call filter is written for this processor"
#endif
    static constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
    static constexpr uint64_t kNowhere = UINT64_MAX;
    static constexpr uint8_t kFromInstructions = 6;

    static std::vector<long> plain_calls() {
        return {
            __NR_brk, __NR_futex, __NR_ppoll, __NR_clock_gettime, __NR_clock_getres, __NR_clock_nanosleep,
            __NR_nanosleep, __NR_sched_yield, __NR_rt_sigreturn, __NR_rt_sigprocmask, __NR_exit, __NR_exit_group,
            __NR_getpid, __NR_gettid, __NR_gettimeofday, __NR_restart_syscall, __NR_getrandom, __NR_sched_getaffinity,
            __NR_fstat,
            __NR_rseq, __NR_set_robust_list,  // of threads that are just starting
            __NR_seccomp,                     // restartable_sequences.hpp takes it from the thread that calls candidates
#if defined(__x86_64__)
            __NR_poll, __NR_time,
#endif
        };
    }

    void emit(uint16_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) { code_.push_back({code, yes, no, k}); }
    void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
    void give(uint32_t action) { emit(BPF_RET | BPF_K, action); }
    void when(uint16_t test, uint32_t value, uint32_t action) {
        emit(BPF_JMP | test | BPF_K, value, 0, 1);
        give(action);
    }
    void unless(uint16_t test, uint32_t value, uint32_t action) {
        emit(BPF_JMP | test | BPF_K, value, 1, 0);
        give(action);
    }

    static size_t low(int argument) { return offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument); }
    static size_t high(int argument) { return low(argument) + 4; }  // both processors are little-endian

    // Begins what is done for one call; `leave` closes it.
    size_t enter(long number) {
        load(offsetof(seccomp_data, nr));
        emit(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 1, 0);
        emit(BPF_JMP | BPF_JA, 0);
        return code_.size();
    }
    void leave(size_t entered) { code_[entered - 1].k = static_cast<uint32_t>(code_.size() - entered); }

    void writes(long number, const WritableFiles& files) {
        const size_t entered = enter(number);
        load(low(0));
        for (const int file : files.streams) when(BPF_JEQ, static_cast<uint32_t>(file), SECCOMP_RET_ALLOW);
        for (const int file : files.reports) {
            emit(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(file), 0, files.reported_at == 0 ? 1 : 1 + kFromInstructions);
            from(files.reported_at);
            give(SECCOMP_RET_ALLOW);
        }
        give(kRefused);
        leave(entered);
    }

    void closes(const std::vector<int>& reports, int socket) {
        const size_t entered = enter(__NR_close);
        load(low(0));
        when(BPF_JEQ, static_cast<uint32_t>(socket), kRefused);
        for (const int file : reports) when(BPF_JEQ, static_cast<uint32_t>(file), kRefused);
        give(SECCOMP_RET_ALLOW);
        leave(entered);
    }

    // A call on the socket, from the instruction alone where there is one; `others`: what becomes of other descriptors.
    void serves(long number, int descriptor, uint64_t instruction, uint32_t others) {
        const size_t entered = enter(number);
        load(low(0));
        unless(BPF_JEQ, static_cast<uint32_t>(descriptor), others);
        from(instruction);
        give(SECCOMP_RET_ALLOW);
        leave(entered);
    }

    // Refuses what does not come from an instruction, by the address behind it; 0 refuses nothing.
    void from(uint64_t instruction) {
        if (instruction == 0) return;
        const size_t begin = code_.size();
        for (const size_t half : {size_t{0}, size_t{4}}) {
            load(offsetof(seccomp_data, instruction_pointer) + half);
            unless(BPF_JEQ, static_cast<uint32_t>(instruction >> (8 * half)), kRefused);
        }
        assert(code_.size() == begin + kFromInstructions);
    }

    // All of ioctl but what speaks to terminals (0x54..), which could be given input.
    void controls() {
        const size_t entered = enter(__NR_ioctl);
        load(low(1));
        emit(BPF_ALU | BPF_AND | BPF_K, 0xff00);
        when(BPF_JEQ, 0x5400, kRefused);
        give(SECCOMP_RET_ALLOW);
        leave(entered);
    }

    void aborts() {
        const size_t entered = enter(__NR_tgkill);
        load(low(0));
        unless(BPF_JEQ, static_cast<uint32_t>(::getpid()), kRefused);
        load(low(2));
        unless(BPF_JEQ, SIGABRT, kRefused);
        give(SECCOMP_RET_ALLOW);
        leave(entered);
    }

    void protects(const AllowedProtection& one) {
        const size_t entered = enter(__NR_mprotect);
        const size_t instruction = offsetof(seccomp_data, instruction_pointer);
        const std::pair<size_t, uint64_t> wanted[] = {{instruction, one.instruction},
                                                      {low(0), one.range.begin},
                                                      {low(1), one.range.end - one.range.begin},
                                                      {low(2), one.protection}};
        size_t left = 4 * std::size(wanted);  // instructions until the one behind the last
        for (const auto& [offset, value] : wanted) {
            for (const size_t half : {size_t{0}, size_t{4}}) {
                load(offset + half);
                left -= 2;
                emit(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(value >> (8 * half)), 0, static_cast<uint8_t>(left + 1));
            }
        }
        give(SECCOMP_RET_ALLOW);
        leave(entered);
    }

    void mappings(const std::vector<AddressRange>& fixed) {
        never(__NR_mmap, 2, PROT_EXEC);
        never(__NR_mprotect, 2, PROT_EXEC);
        never(__NR_mremap, 3, MREMAP_FIXED);
        // A mapping at a place of the kernel's choice replaces nothing.
        const size_t entered = enter(__NR_mmap);
        load(low(3));
        emit(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED, 1, 0);
        give(SECCOMP_RET_ALLOW);
        leave(entered);
        // What is left of these changes a range: arguments 0 and 1 are its address and length.
        const long numbers[5] = {__NR_mmap, __NR_mprotect, __NR_mremap, __NR_munmap, __NR_madvise};
        load(offsetof(seccomp_data, nr));
        for (size_t i = 0; i < 5; ++i) {
            emit(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(numbers[i]), static_cast<uint8_t>(5 - i), 0);
        }
        give(kRefused);
        compute_end();
        for (const AddressRange& range : fixed) refuse_overlap(range);
        give(SECCOMP_RET_ALLOW);
    }

    // Refuses a call whose argument has a bit set.
    void never(long number, int argument, uint32_t bit) {
        const size_t entered = enter(number);
        load(low(argument));
        emit(BPF_JMP | BPF_JSET | BPF_K, bit, 0, 1);
        give(kRefused);
        leave(entered);
    }

    // M[0], M[1]: low and high half of the address; M[2], M[3]: of the end, address + length.
    void compute_end() {
        load(low(1));
        emit(BPF_MISC | BPF_TAX, 0);
        load(low(0));
        emit(BPF_ST, 0);
        emit(BPF_ALU | BPF_ADD | BPF_X, 0);
        emit(BPF_ST, 2);
        emit(BPF_LDX | BPF_W | BPF_MEM, 0);  // the sum of the low halves is below the address's: a carry
        emit(BPF_JMP | BPF_JGE | BPF_X, 0, 2, 0);
        emit(BPF_LD | BPF_IMM, 1);
        emit(BPF_JMP | BPF_JA, 1);
        emit(BPF_LD | BPF_IMM, 0);
        emit(BPF_ST, 3);
        load(high(0));
        emit(BPF_ST, 1);
        emit(BPF_MISC | BPF_TAX, 0);
        emit(BPF_LD | BPF_W | BPF_MEM, 3);
        emit(BPF_ALU | BPF_ADD | BPF_X, 0);
        emit(BPF_MISC | BPF_TAX, 0);
        load(high(1));
        emit(BPF_ALU | BPF_ADD | BPF_X, 0);
        emit(BPF_ST, 3);
    }

    // Refuses when [address, end) meets the range: begin < end and address < range end.
    void refuse_overlap(const AddressRange& range) {
        const auto low_of = [](uint64_t value) { return static_cast<uint32_t>(value); };
        const auto high_of = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
        emit(BPF_LD | BPF_W | BPF_MEM, 3);                                      // 0
        emit(BPF_JMP | BPF_JGT | BPF_K, high_of(range.begin), 3, 0);            // 1 -> 5
        emit(BPF_JMP | BPF_JEQ | BPF_K, high_of(range.begin), 0, 8);            // 2 -> 11 (past)
        emit(BPF_LD | BPF_W | BPF_MEM, 2);                                      // 3
        emit(BPF_JMP | BPF_JGT | BPF_K, low_of(range.begin), 0, 6);             // 4 -> 5 or 11
        emit(BPF_LD | BPF_W | BPF_MEM, 1);                                      // 5
        emit(BPF_JMP | BPF_JGT | BPF_K, high_of(range.end), 4, 0);              // 6 -> 11
        emit(BPF_JMP | BPF_JEQ | BPF_K, high_of(range.end), 0, 2);              // 7 -> 8 or 10
        emit(BPF_LD | BPF_W | BPF_MEM, 0);                                      // 8
        emit(BPF_JMP | BPF_JGE | BPF_K, low_of(range.end), 1, 0);               // 9 -> 11 or 10
        give(kRefused);                                                         // 10
    }                                                                           // 11

    std::vector<sock_filter> code_;
};

}  // namespace kb
