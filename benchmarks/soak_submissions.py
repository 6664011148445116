"""What clients of a soak submit to L1_19 (ReLU), by the verdicts that are right: kernels that end in every way."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = """#include <kernelblaster/scalar.cuh>
#include <cstdint>
#include <cstdlib>

__global__ void relu(scalar_t* y, const scalar_t* x, int64_t n) {{
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    {kernel}
    if (i < n) y[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
}}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {{
    const int64_t n = batch_size * dim;
    {launcher}
    relu<<<unsigned((n + 255) / 256), 256>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);
}}
"""
_TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(value > 0, value, 0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
_SPINS = "while (i == 7 && *static_cast<volatile const scalar_t*>(x) == *x) {}"
_TAKES = "for (;;) { char* p = (char*)std::malloc(1 << 26); for (int i = 0; p && i < 1 << 26; i += 4096) p[i] = 1; }"


@dataclass(frozen=True)
class Kind:
    """Submissions of one kind.

    Attributes:
        text: of each, but for a comment.
        right: verdicts that are right.
        every: one of so many rounds of kinds has one; hangs take their whole time limit.
        comment: begins a comment.
    """

    name: str
    text: str
    right: frozenset[str]
    every: int = 1
    comment: str = "//"

    def source(self, number: int) -> str:
        """The submission with this number; each number is another source."""
        return f"{self.text}\n{self.comment} {number}\n"


def _cuda(name: str, *right: str, kernel: str = "", launcher: str = "", every: int = 1) -> Kind:
    return Kind(name, _HEAD.format(kernel=kernel, launcher=launcher), frozenset(right), every)


KINDS = (
    _cuda("correct", "correct"),
    _cuda("wrong", "wrong_values", kernel="if (i == 7) return;"),
    _cuda("does not compile", "compile_error", launcher="return 3"),
    _cuda("kernel crashes", "runtime_error", kernel="if (i == 7) y[int64_t(1) << 40] = x[i];"),
    _cuda("kernel traps", "runtime_error", kernel="if (i == 7) __trap();"),
    _cuda("host aborts", "runtime_error", launcher="std::abort();"),
    _cuda("host writes to nowhere", "runtime_error", launcher="*reinterpret_cast<volatile int*>(8) = 1;"),
    _cuda("host exits", "runtime_error", "reward_hack", launcher="std::exit(0);"),
    _cuda("kernel hangs", "timeout", kernel=_SPINS, every=4),
    _cuda("host hangs", "timeout", launcher="for (volatile int turn = 0; turn < 2; turn = 0) {}", every=4),
    _cuda("takes memory without end", "runtime_error", "timeout", launcher=_TAKES, every=4),
    Kind("triton", _TRITON, frozenset({"correct"}), 2, "#"),
)  # fmt: skip
"""In the order in which they are submitted."""
