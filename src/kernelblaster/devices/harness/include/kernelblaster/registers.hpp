// Empties the registers that a call may change, so that nothing of a secret is left in them for a candidate to find: the
// C library, for one, copies by vector registers that little else ever uses.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#define KB_VECTOR_REGISTERS                                                                                         \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
        "xmm14", "xmm15"
#endif

namespace kb {

class RegisterWipe {
   public:
#if defined(__x86_64__)
    // Made before a candidate is loaded, and kept where none can write: which registers there are.
    RegisterWipe() {
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavesExtended) == 0) return;
        unsigned enabled = 0, high = 0;
        asm volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
        has_wide_ = (enabled & kWide) == kWide;
        has_512_ = (enabled & k512) == k512;
    }

    void now() const {
        asm volatile(
            "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n pxor %%xmm3, %%xmm3\n"
            "pxor %%xmm4, %%xmm4\n pxor %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n pxor %%xmm7, %%xmm7\n"
            "pxor %%xmm8, %%xmm8\n pxor %%xmm9, %%xmm9\n pxor %%xmm10, %%xmm10\n pxor %%xmm11, %%xmm11\n"
            "pxor %%xmm12, %%xmm12\n pxor %%xmm13, %%xmm13\n pxor %%xmm14, %%xmm14\n pxor %%xmm15, %%xmm15\n" ::
                : KB_VECTOR_REGISTERS);
        if (has_wide_) asm volatile("vzeroall" ::: KB_VECTOR_REGISTERS);
        if (has_512_) {
            asm volatile(  // the compiler never uses these: it compiles for any x86-64
                "vpxord %zmm16, %zmm16, %zmm16\n vpxord %zmm17, %zmm17, %zmm17\n vpxord %zmm18, %zmm18, %zmm18\n"
                "vpxord %zmm19, %zmm19, %zmm19\n vpxord %zmm20, %zmm20, %zmm20\n vpxord %zmm21, %zmm21, %zmm21\n"
                "vpxord %zmm22, %zmm22, %zmm22\n vpxord %zmm23, %zmm23, %zmm23\n vpxord %zmm24, %zmm24, %zmm24\n"
                "vpxord %zmm25, %zmm25, %zmm25\n vpxord %zmm26, %zmm26, %zmm26\n vpxord %zmm27, %zmm27, %zmm27\n"
                "vpxord %zmm28, %zmm28, %zmm28\n vpxord %zmm29, %zmm29, %zmm29\n vpxord %zmm30, %zmm30, %zmm30\n"
                "vpxord %zmm31, %zmm31, %zmm31\n");
        }
        asm volatile(
            "xor %%eax, %%eax\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n xor %%esi, %%esi\n xor %%edi, %%edi\n"
            "xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n xor %%r11d, %%r11d\n" ::
                : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
    }

   private:
    static constexpr unsigned kSavesExtended = 1u << 27, kWide = 0x6, k512 = 0xe6;

    bool has_wide_ = false, has_512_ = false;
#else
    void now() const {}  // no gate closes the harness' memory on this processor, either
#endif
};

}  // namespace kb
