import torch
import triton
import triton.language as tl


@triton.jit
def fold_kernel(w_ptr, folded_ptr, K, SUMMED, BLOCK: tl.constexpr):
    feature = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for s in range(0, SUMMED):
        total += tl.load(w_ptr + (feature * SUMMED + s) * K + k, mask=k < K, other=0.0).to(tl.float32)
    tl.store(folded_ptr + feature * K + k, total.to(folded_ptr.dtype.element_ty), mask=k < K)


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, SUMMED, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows.to(tl.int64)[:, None] * K + k[None, :],
                    mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols.to(tl.int64)[None, :] * K + k[:, None],
                    mask=(cols < N)[None, :] & (k < K)[:, None], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    bias = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for s in range(0, SUMMED):
        bias += tl.load(b_ptr + cols * SUMMED + s, mask=cols < N, other=0.0).to(tl.float32)
    acc += bias[None, :]
    tl.store(y_ptr + rows.to(tl.int64)[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def groups(y_ptr, g, count, averaged, compared, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for a in range(0, averaged):
        top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
        for c in range(0, compared):
            top = tl.maximum(top, tl.load(y_ptr + (g * averaged + a) * compared + c, mask=g < count, other=0.0))
        total += top
    return tl.where(g < count, total / averaged, float("-inf"))


@triton.jit
def tail_kernel(y_ptr, out_ptr, count, averaged, compared, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    y_ptr += row.to(tl.int64) * N
    g = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        top = tl.maximum(top, groups(y_ptr, start + g, count, averaged, compared, BLOCK))
    largest = tl.max(top, axis=0)
    shift = tl.where(tl.abs(largest) == float("inf"), 0.0, largest)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        sums += tl.exp(groups(y_ptr, start + g, count, averaged, compared, BLOCK) - shift)
    tl.store(out_ptr + row, (tl.log(tl.sum(sums, axis=0)) + shift).to(out_ptr.dtype.element_ty))


class ModelNew(torch.nn.Module):
    def __init__(self, in_features: int, branches: int, parts: int, averaged: int, compared: int, summed: int) -> None:
        super().__init__()
        features = branches * parts * averaged * compared
        self.linear = torch.nn.Linear(in_features, features * summed)
        self.features, self.groups = features, branches * parts
        self.averaged, self.compared, self.summed = averaged, compared, summed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m, k = x.shape
        n = self.features
        folded = torch.empty((n, k), device=x.device, dtype=x.dtype)
        fold_kernel[(n, triton.cdiv(k, 256))](self.linear.weight, folded, k, self.summed, BLOCK=256)
        y = torch.empty((m, n), device=x.device, dtype=torch.float32)
        out = torch.empty((m, 1), device=x.device, dtype=x.dtype)
        linear_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            x, folded, self.linear.bias, y, m, n, k, self.summed, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
        tail_kernel[(m,)](y, out, self.groups, self.averaged, self.compared, n, BLOCK=64)
        return out
