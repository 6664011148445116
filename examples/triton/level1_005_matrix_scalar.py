"""C = s A: `s` is an argument of forward, and of the kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(a, c, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(a + at, mask=inside).to(tl.float32) * s
    tl.store(c + at, value.to(c.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, A, s):
        C = torch.empty_like(A)
        scale_kernel[lambda meta: (triton.cdiv(A.numel(), meta["BLOCK"]),)](A, C, s, A.numel(), BLOCK=1024)
        return C
