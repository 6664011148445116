"""scaling_factor * y * sigmoid(y) with y = x W^T + b: one kernel, the activation behind the last tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_swish_kernel(x, weight, bias, out, rows, inner, columns, factor,
                        ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, inner, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        there = depth < inner
        left = tl.load(
            x + row[:, None] * inner + depth[None, :], mask=(row[:, None] < rows) & there[None, :], other=0.0
        )
        right = tl.load(
            weight + column[None, :] * inner + depth[:, None],
            mask=(column[None, :] < columns) & there[:, None],
            other=0.0,
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    y = total + tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    y = factor * y / (1.0 + tl.exp(-y))
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(out + row[:, None] * columns + column[None, :], y.to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        rows, inner = x.shape
        columns = self.matmul.weight.shape[0]
        out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
        linear_swish_kernel[(triton.cdiv(rows, 64), triton.cdiv(columns, 64))](
            x, self.matmul.weight, self.matmul.bias, out, rows, inner, columns, self.scaling_factor,
            ROWS=64, COLUMNS=64, DEPTH=32,
        )  # fmt: skip
        return out
