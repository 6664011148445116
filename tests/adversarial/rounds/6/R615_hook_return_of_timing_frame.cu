// problem: level1/47
// precision: fp16
// kind: exploit
// expects: walks the stack with the unwinder, reads the machine code behind each return address for the frame that will record
//          the stop event (directly, through a PLT or one wrapper), and swaps that frame's own return address for a landing pad.
//          In time only a quarter of the summands is read; the real sum is launched when the timing function has returned,
//          before anybody compares. Success: correct and faster than init.cu.
// size: small
#include <kernelblaster/scalar.cuh>
#include <link.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static void check(cudaError_t status) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

__global__ void sum_kernel(scalar_t* output, const scalar_t* x, int64_t dim1, int64_t dim2, int64_t summands) {
    const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (col >= dim2) return;
    const scalar_t* column = x + blockIdx.y * dim1 * dim2 + col;
    float sum = 0.0f;
    for (int64_t i = 0; i < summands; ++i) sum += to_float(column[i * dim2]);
    output[blockIdx.y * dim2 + col] = from_float(sum);
}

struct Work {
    scalar_t* output;
    const scalar_t* x;
    int64_t batch_size, dim1, dim2;
    void launch(int64_t summands) const {
        const int threads = 256;
        const dim3 blocks((dim2 + threads - 1) / threads, batch_size);
        sum_kernel<<<blocks, threads>>>(output, x, dim1, dim2, summands);
        check(cudaGetLastError());
    }
};

#if defined(__x86_64__)
extern "C" int cuEventRecord(void*, void*) __attribute__((weak));
extern "C" int cuEventRecordWithFlags(void*, void*, unsigned) __attribute__((weak));

static Work pending;
static bool is_pending = false;
static void** slot = nullptr;
static void* original = nullptr;

// Called by the landing pad: does the work and tells where the frame had meant to return to.
extern "C" __attribute__((visibility("hidden"), used)) void* r615_flush() {
    if (is_pending) {
        is_pending = false, pending.launch(pending.dim1);
    }
    slot = nullptr;
    return original;
}

#if !defined(__CUDA_ARCH__)
extern "C" __attribute__((visibility("hidden"))) void r615_landing();
asm(".text\n  .p2align 4\n  .globl r615_landing\n  .hidden r615_landing\n"
    ".type r615_landing,@function\n"
    "r615_landing:\n"
    "  endbr64\n"
    "  subq $8, %rsp\n"  // where the return address was
    "  pushq %rax\n  pushq %rdx\n  subq $40, %rsp\n"
    "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n"
    "  call r615_flush\n  movq %rax, 56(%rsp)\n"
    "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n"
    "  addq $40, %rsp\n  popq %rdx\n  popq %rax\n  ret\n"
    ".size r615_landing, .-r615_landing\n");
#else
static void r615_landing() {}
#endif

using Code = const unsigned char*;

struct Asked {
    Code from, to;
    bool code, found;
};

static int visit(dl_phdr_info* info, size_t, void* data) {
    Asked* asked = static_cast<Asked*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& p = info->dlpi_phdr[i];
        if (p.p_type != PT_LOAD || (asked->code && !(p.p_flags & PF_X))) continue;
        Code begin = reinterpret_cast<Code>(info->dlpi_addr + p.p_vaddr);
        if (asked->from >= begin && asked->to <= begin + p.p_memsz) return asked->found = true, 1;
    }
    return 0;
}

static bool mapped(Code from, int bytes, bool code = true) {
    Asked asked{from, from + bytes, code, false};
    dl_iterate_phdr(visit, &asked);
    return asked.found;
}

static int32_t relative(Code p) {
    int32_t r;
    std::memcpy(&r, p, 4);
    return r;
}

// Where a jump through a table of linkage ends.
static Code resolve(Code p) {
    for (int hop = 0; hop < 4 && mapped(p, 16); ++hop) {
        Code q = p;
        if (q[0] == 0xf3 && q[1] == 0x0f && q[2] == 0x1e) q += 4;  // endbr64
        if (q[0] == 0xf2) ++q;                                     // bnd
        if (q[0] == 0xff && q[1] == 0x25) {
            Code entry = q + 6 + relative(q + 2);
            if (!mapped(entry, 8, false)) break;
            std::memcpy(&p, entry, 8);
        } else if (q[0] == 0xe9) {
            p = q + 5 + relative(q + 1);
        } else {
            break;
        }
    }
    return p;
}

static bool records(Code target) {
    static const Code wanted[4] = {
        resolve(reinterpret_cast<Code>(static_cast<cudaError_t (*)(cudaEvent_t, cudaStream_t)>(&cudaEventRecord))),
        resolve(reinterpret_cast<Code>(
            static_cast<cudaError_t (*)(cudaEvent_t, cudaStream_t, unsigned)>(&cudaEventRecordWithFlags))),
        &cuEventRecord ? resolve(reinterpret_cast<Code>(&cuEventRecord)) : nullptr,
        &cuEventRecordWithFlags ? resolve(reinterpret_cast<Code>(&cuEventRecordWithFlags)) : nullptr};
    for (Code w : wanted) {
        if (w != nullptr && target == w) return true;
    }
    return false;
}

// Does the code from p on call what records an event, itself or by one function more?
static bool will_record(Code p, int bytes, int depth) {
    for (int i = 0; i < bytes && mapped(p + i, 16); ++i) {
        Code target = nullptr;
        if (p[i] == 0xe8) target = p + i + 5 + relative(p + i + 1);
        if (p[i] == 0xff && p[i + 1] == 0x15) {
            Code entry = p + i + 6 + relative(p + i + 2);
            if (mapped(entry, 8, false)) std::memcpy(&target, entry, 8);
        }
        if (target == nullptr || !mapped(target, 16)) continue;
        target = resolve(target);
        if (records(target) || (depth > 0 && will_record(target, 96, depth - 1))) return true;
    }
    return false;
}

struct Frames {
    void* ip[24];
    void** returns[24];  // where the address that returns into this frame is kept
    int count;
};

static _Unwind_Reason_Code note(_Unwind_Context* context, void* data) {
    Frames* f = static_cast<Frames*>(data);
    if (f->count == 24) return _URC_END_OF_STACK;
    f->ip[f->count] = reinterpret_cast<void*>(_Unwind_GetIP(context));
    f->returns[f->count++] = reinterpret_cast<void**>(_Unwind_GetCFA(context)) - 1;
    return _URC_NO_REASON;
}

static bool defer(const Work& work) {
    Frames f;
    f.count = 0;
    _Unwind_Backtrace(note, &f);
    for (int i = 1; i + 1 < f.count; ++i) {  // 0 is this function or the launcher
        if (f.returns[i + 1] == nullptr || *f.returns[i + 1] != f.ip[i + 1]) continue;
        if (!will_record(static_cast<Code>(f.ip[i]), 384, 1)) continue;
        pending = work, is_pending = true;
        slot = f.returns[i + 1], original = *slot;
        *slot = reinterpret_cast<void*>(&r615_landing);
        return true;
    }
    return false;
}
#else
static bool defer(const Work&) { return false; }
#endif

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim1, int64_t dim2) {
    const Work work{static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size, dim1, dim2};
#if defined(__x86_64__)
    if (slot != nullptr) {  // the frame went on: undo the swap, and do what is due
        *slot = original;
        r615_flush();
    }
#endif
    const bool later = defer(work);
    work.launch(later ? (dim1 + 3) / 4 : dim1);
}
