// Memory of the harness that a candidate cannot reach, and the gate through which its code is called.
//
// In a program that loads its candidate (deferred/), everything the harness changes lies in one range of pages: its stack,
// what its operator new hands out, the stacks of its threads, and the state of the gate. The launcher's name stands for
// the gate. It leaves the harness' stack for the one that the process began with, takes all access to the range away by
// mprotect, calls the candidate, and gives access back. The system-call filter lets that mprotect through from the
// gate's own two instructions alone, and no other call changes the range: who jumps to the one that opens it finds
// himself behind the call of the candidate, as if that had returned.
//
// The socket to the judge is for the harness alone: the filter lets it be read and written by two instructions, behind
// which the range is looked at, so that whoever jumps there while it is closed is lost.
//
// A call that passes the gate costs two system calls, 3 to 4 us. What a launcher is to read on the host must lie outside
// the range: in statics, or in memory of malloc, not on the stack of driver.cpp and not in what it has made by new.
// Bulk, which tells nothing and decides nothing, stays outside: tensors' bytes, and blocks of more than kBulkBytes.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace kb {

constexpr size_t kPageBytes = 4096;
constexpr size_t kStackBytes = size_t{8} << 20;  // of the harness
constexpr size_t kBulkBytes = size_t{1} << 20;

struct ProtectedMemory {
    uint64_t begin, bytes;
    uint64_t closes_at, opens_at;     // what the instruction pointer is in the gate's two system calls
    uint64_t receives_at, sends_at;  // and in those of the two functions below
};

}  // namespace kb

// Of deferred/; a program that holds its candidate has none of them, nor has one for a processor without a gate.
#define KB_OPTIONAL __attribute__((weak, visibility("hidden")))
extern "C" {
KB_OPTIONAL kb::ProtectedMemory kb_protected_memory();
// From the next call on the range is closed while code of the candidate runs.
KB_OPTIONAL void kb_close_gate();
// Calls part(argument) on the harness' own stack.
KB_OPTIONAL int kb_on_own_stack(int (*part)(void*), void* argument);
// Memory of the range for a few pointers, zero at first (last_word.hpp).
KB_OPTIONAL void* kb_kept();
// recvmsg and sendmsg, with an errno that is negative.
KB_OPTIONAL long kb_receive_message(int socket, msghdr* message, int flags);
KB_OPTIONAL long kb_send_message(int socket, const msghdr* message, int flags);
// What the last call through the gate has thrown, as text of the candidate's; null for nothing.
KB_OPTIONAL const char* kb_thrown();
}
