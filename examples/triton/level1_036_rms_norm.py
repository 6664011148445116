"""x / sqrt(mean over channels of x^2 + eps). A constructor's parameter named like a scalar of the problem gets it."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x, out, features, inner, eps, BLOCK: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64) * features * inner
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < inner
    squares = tl.zeros((BLOCK,), tl.float32)
    for feature in range(features):
        value = tl.load(x + sample + feature * inner + place, mask=inside, other=0.0).to(tl.float32)
        squares += value * value
    scale = 1.0 / tl.sqrt(squares / features + eps)
    for feature in range(features):
        at = sample + feature * inner + place
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + at, (value * scale).to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        out = torch.empty_like(x)
        batch, features, height, width = x.shape
        inner = height * width
        rms_norm_kernel[(triton.cdiv(inner, 256), batch)](x, out, features, inner, self.eps, BLOCK=256)
        return out
