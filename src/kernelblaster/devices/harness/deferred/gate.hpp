// The gate of include/kernelblaster/protected_memory.hpp for x86-64, under the launcher's name. For deferred.cpp alone.
#pragma once

#include <kernelblaster/protected_memory.hpp>
#include <sys/mman.h>
#include <unwind.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>

#include "protected_memory.hpp"

// How many words of a launcher's arguments lie on the stack, at most, by its mangled name (System V ABI for x86-64,
// section 3.2.3; Itanium C++ ABI, section 5.1): integers and pointers beyond six, floating-point numbers beyond eight.
// A type that is named, or was named before, may be either.
constexpr size_t words_on_the_stack(const char* mangled) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t length = 0, integers = 0, floats = 0;
    const char* at = mangled + 2;  // _Z
    for (; digit(*at); ++at) length = 10 * length + static_cast<size_t>(*at - '0');
    for (at += length; *at != '\0'; ++at) {
        bool pointer = false;
        for (; *at == 'P' || *at == 'K' || *at == 'R' || *at == 'O' || *at == 'V'; ++at) pointer |= *at != 'K' && *at != 'V';
        const bool builtin_float = *at == 'f' || *at == 'd', named = *at == 'S' || digit(*at);
        if (pointer || !builtin_float) ++integers;
        if (!pointer && (builtin_float || named)) ++floats;
        if (*at == 'S') {
            while (*at != '\0' && *at != '_') ++at;
        } else if (digit(*at)) {
            for (length = 0; digit(*at); ++at) length = 10 * length + static_cast<size_t>(*at - '0');
            at += length - 1;
        }
        if (*at == '\0') break;
    }
    return (integers > 6 ? integers - 6 : 0) + (floats > 8 ? floats - 8 : 0);
}
static_assert(words_on_the_stack("_Z6launchPvS_PKfS1_lfi") == 0);
static_assert(words_on_the_stack("_Z6launchPvS_PKfS1_llflll") == 3);
static_assert(words_on_the_stack("_Z6launchPvPKcdddddddddd") == 2);

extern "C" {

KB_HIDDEN extern const size_t kb_stack_words = words_on_the_stack(KB_LAUNCHER);
KB_HIDDEN char kb_thrown_text[2001];  // what a candidate may write anyway

extern KB_HIDDEN const char kb_gate_closes[], kb_gate_opens[], kb_gate_thrown[], kb_receives[], kb_sends[];

// What the unwinder asks about the gate's frame: whatever comes up here is caught. It runs while the range is closed.
KB_HIDDEN _Unwind_Reason_Code kb_gate_personality(int, _Unwind_Action actions, _Unwind_Exception_Class,
                                                  _Unwind_Exception* thrown, _Unwind_Context* context) {
    if (actions & _UA_SEARCH_PHASE) return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME)) return _URC_CONTINUE_UNWIND;
    _Unwind_SetGR(context, 0, reinterpret_cast<_Unwind_Word>(thrown));  // rax
    _Unwind_SetIP(context, reinterpret_cast<_Unwind_Ptr>(kb_gate_thrown));
    return _URC_INSTALL_CONTEXT;
}

// Keeps the text of an exception, still on the candidate's side of the gate.
KB_HIDDEN void kb_keep_thrown(_Unwind_Exception* thrown) noexcept {
    const char* text = "the candidate threw something";
    try {
        _Unwind_Resume_or_Rethrow(thrown);
    } catch (const std::exception& error) {
        text = error.what();
        std::strncpy(kb_thrown_text, text, sizeof kb_thrown_text - 1);
    } catch (...) {
        std::strncpy(kb_thrown_text, text, sizeof kb_thrown_text - 1);
    }
}

void kb_gate();
int kb_exchange_stacks(int (*part)(void*), void* argument, void* top);

}  // extern "C"

static_assert(offsetof(RangeState, closes) == 0 && offsetof(RangeState, target) == 8);
static_assert(offsetof(RangeState, harness_stack) == 16 && offsetof(RangeState, outer_stack) == 24);
static_assert(offsetof(RangeState, thrown) == 32);
static_assert(kRangeBytes == 0x4000000 && kStatePage == 0x801000);

asm(".text\n"
    ".set kb_state, kb_range + 0x801000\n"
    // Keeps the process' stack for calls of the candidate, and goes on at the top of the harness'.
    ".globl kb_exchange_stacks\n.hidden kb_exchange_stacks\n.type kb_exchange_stacks, @function\n"
    "kb_exchange_stacks:\n"
    "    .cfi_startproc\n"
    "    endbr64\n"
    "    push %rbp\n"
    "    .cfi_def_cfa_offset 16\n    .cfi_offset %rbp, -16\n"
    "    mov %rsp, %rbp\n"
    "    .cfi_def_cfa_register %rbp\n"
    "    mov %rdi, %rax\n"
    "    mov %rsi, %rdi\n"
    "    mov %rsp, kb_state+24(%rip)\n"
    "    mov %rdx, %rsp\n"
    "    call *%rax\n"
    "    leave\n"
    "    .cfi_def_cfa %rsp, 8\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size kb_exchange_stacks, . - kb_exchange_stacks\n"
    // The gate. What it needs of the range after closing is in registers that belong to no argument.
    ".globl " KB_LAUNCHER "\n.type " KB_LAUNCHER ", @function\n"
    ".globl kb_gate\n.hidden kb_gate\n.type kb_gate, @function\n" KB_LAUNCHER ":\n"
    "kb_gate:\n"
    "    .cfi_startproc\n"
    "    .cfi_personality 0x1b, kb_gate_personality\n"
    "    .cfi_undefined %rip\n"  // whoever unwinds from below ends here
    "    endbr64\n"
    "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, kb_state+16(%rip)\n"
    "    mov kb_state+24(%rip), %rbx\n"
    "    mov kb_stack_words(%rip), %rax\n"
    "    lea (,%rax,8), %r10\n"
    "    sub %r10, %rbx\n"
    "    and $-16, %rbx\n"
    "1:  test %rax, %rax\n"
    "    je 2f\n"
    "    dec %rax\n"
    "    mov 56(%rsp,%rax,8), %r10\n"
    "    mov %r10, (%rbx,%rax,8)\n"
    "    jmp 1b\n"
    "2:  mov kb_state+8(%rip), %rbp\n"
    "    cmpq $0, kb_state(%rip)\n"
    "    mov %rbx, %rsp\n"
    "    je 3f\n"
    "    mov %rdi, %r12\n    mov %rsi, %r13\n    mov %rdx, %r14\n    mov %rcx, %r15\n"
    "    mov $10, %eax\n"  // mprotect
    "    lea kb_range+0x1000(%rip), %rdi\n"
    "    mov $0x3ffe000, %esi\n"
    "    xor %edx, %edx\n"
    "    syscall\n"
    ".globl kb_gate_closes\n.hidden kb_gate_closes\nkb_gate_closes:\n"
    "    test %eax, %eax\n"
    "    jne 6f\n"
    "    mov %r12, %rdi\n    mov %r13, %rsi\n    mov %r14, %rdx\n    mov %r15, %rcx\n"
    "3:  xor %ebx, %ebx\n    xor %r10d, %r10d\n    xor %r11d, %r11d\n"
    "    call *%rbp\n"
    "    xor %ebx, %ebx\n"
    "5:  cld\n"
    "    mov $10, %eax\n"
    "    lea kb_range+0x1000(%rip), %rdi\n"
    "    mov $0x3ffe000, %esi\n"
    "    mov $3, %edx\n"
    "    syscall\n"
    ".globl kb_gate_opens\n.hidden kb_gate_opens\nkb_gate_opens:\n"
    "    test %eax, %eax\n"
    "    jne 6f\n"
    "    mov kb_state+16(%rip), %rsp\n"
    "    mov %rbx, kb_state+32(%rip)\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
    "    ret\n"
    "6:  ud2\n"
    ".globl kb_gate_thrown\n.hidden kb_gate_thrown\nkb_gate_thrown:\n"
    "    cld\n"
    "    mov %rax, %rdi\n"
    "    and $-16, %rsp\n"
    "    call kb_keep_thrown\n"
    "    mov $1, %ebx\n"
    "    jmp 5b\n"
    "    .cfi_endproc\n"
    ".size kb_gate, . - kb_gate\n"
    ".size " KB_LAUNCHER ", . - " KB_LAUNCHER "\n"
    // What speaks to the judge. Both end by looking at the state, which nobody can while it is closed.
    ".globl kb_receive_message\n.hidden kb_receive_message\n.type kb_receive_message, @function\n"
    "kb_receive_message:\n"
    "    .cfi_startproc\n"
    "    endbr64\n"
    "    mov $47, %eax\n"
    "    syscall\n"
    ".globl kb_receives\n.hidden kb_receives\nkb_receives:\n"
    "    cmpq $0, kb_state(%rip)\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size kb_receive_message, . - kb_receive_message\n"
    ".globl kb_send_message\n.hidden kb_send_message\n.type kb_send_message, @function\n"
    "kb_send_message:\n"
    "    .cfi_startproc\n"
    "    endbr64\n"
    "    mov $46, %eax\n"
    "    syscall\n"
    ".globl kb_sends\n.hidden kb_sends\nkb_sends:\n"
    "    cmpq $0, kb_state(%rip)\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size kb_send_message, . - kb_send_message\n");

extern "C" {

KB_HIDDEN kb::ProtectedMemory kb_protected_memory() {
    const auto address = [](const char* at) { return reinterpret_cast<uint64_t>(at); };
    return {address(kb_range) + kb::kPageBytes, kRangeBytes - 2 * kb::kPageBytes, address(kb_gate_closes),
            address(kb_gate_opens), address(kb_receives), address(kb_sends)};
}

KB_HIDDEN void* kb_kept() { return range_state().kept; }

KB_HIDDEN void kb_close_gate() { range_state().closes = 1; }

KB_HIDDEN int kb_on_own_stack(int (*part)(void*), void* argument) {
    ::mprotect(kb_range, kb::kPageBytes, PROT_READ);
    ::mprotect(kb_range + kRangeBytes - kb::kPageBytes, kb::kPageBytes, PROT_READ);
    // To close and open the range takes the longer the more pages of it are in use. Where there are no huge pages, it
    // just does: 2.4 us and 0.16 us per page of 4 KiB, on a virtual EPYC.
    ::madvise(kb_range + kb::kPageBytes, kRangeBytes - 2 * kb::kPageBytes, MADV_HUGEPAGE);
    return kb_exchange_stacks(part, argument, kb_range + kStatePage);
}

KB_HIDDEN const char* kb_thrown() {
    if (range_state().thrown == 0) return nullptr;
    range_state().thrown = 0;
    return kb_thrown_text;
}

}  // extern "C"
