import torch
import triton
import triton.language as tl


@triton.jit
def squares_kernel(x, partial, n, per_block, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * per_block
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, per_block, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        total += value * value
    tl.store(partial + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def divide_kernel(x, partial, out, n, blocks, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    block = tl.arange(0, BLOCKS)
    norm = tl.sqrt(tl.sum(tl.load(partial + block, mask=block < blocks, other=0.0), axis=0))
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) / norm
    tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.numel()
        blocks = min(triton.cdiv(n, 4096), 1024)
        per_block = triton.cdiv(triton.cdiv(n, blocks), 1024) * 1024
        partial = torch.empty(blocks, dtype=torch.float32, device=x.device)
        out = torch.empty_like(x)
        squares_kernel[(blocks,)](x, partial, n, per_block, BLOCK=1024)
        divide_kernel[(triton.cdiv(n, 1024),)](
            x, partial, out, n, blocks, BLOCK=1024, BLOCKS=triton.next_power_of_2(blocks)
        )
        return out
