"""C = A B by tiles and `tl.dot`. Triton's default for fp32 is TF32, which the error budget of fp32 refuses."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None] * n + depth[None, :], mask=(rows[:, None] < n) & (depth[None, :] < n), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * n + columns[None, :], mask=(depth[:, None] < n) & (columns[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (rows[:, None] < n) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        C = torch.empty_like(A)
        n = A.shape[0]
        tiles = triton.cdiv(n, 64)
        matmul_kernel[(tiles, tiles)](A, B, C, n, TILE=64, DEPTH=32)
        return C
