"""The Triton kernels of the PTX files beside this one; `python kernels.py` writes those (Triton 3.9, no GPU needed)."""

from __future__ import annotations

import re
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
OPTIONS = {"num_warps": 4, "num_stages": 3, "ptx_version": 84}


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    inside = place < columns
    values = tl.load(x + row * columns + place, mask=inside, other=-float("inf"))
    raised = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + place, raised / tl.sum(raised, axis=0), mask=inside)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :], mask=rows[:, None] < m, other=0.0)
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :], mask=columns[None, :] < n, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def write(source: ASTSource) -> None:
    """One file, which names this one without its folder: lines are kept, what else debuggers read is not."""
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=OPTIONS)
    text = re.sub(r'"/[^"\n]*/(\w+\.py)"', r'"\1"', compiled.asm["ptx"])
    text = re.sub(r"\t\.section\s+\.debug_(?!str).*?\n\t}\n", "", text, flags=re.DOTALL)
    (HERE / f"{compiled.name}.ptx").write_text(text, encoding="utf-8")
    print(compiled.name, compiled.metadata.shared, "bytes of shared memory")


if __name__ == "__main__":
    write(ASTSource(softmax_rows, {"x": "*fp32", "y": "*fp32", "columns": "i32"}, {"BLOCK": 1024}))
    aligned = {(position,): [["tt.divisibility", 16]] for position in range(6)}
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32"}
    write(ASTSource(matmul, types, {"M": 64, "N": 64, "K": 32}, attrs=aligned))
