# problem: level1/6
# precision: fp16
# kind: honest
# expects: correct: split-K with autotuned tiles, a heuristic, strides passed, fp32 partials in torch.empty, second kernel adds
# size: small
import torch
import triton
import triton.language as tl

K_QUANTUM = 128  # a multiple of every BLOCK_K below: splits never share a tile


def split_of(m: int, n: int, k: int) -> tuple[int, int]:
    """Number of splits and the length of each; none is empty."""
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    splits = max(1, min(triton.cdiv(k, 2 * K_QUANTUM), 264 // max(tiles, 1)))
    per_split = triton.cdiv(triton.cdiv(k, splits), K_QUANTUM) * K_QUANTUM
    return triton.cdiv(k, per_split), per_split


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=8, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["K_PER_SPLIT"] == 0})
@triton.jit
def partial_kernel(a_ptr, b_ptr, p_ptr, M, N, K, K_PER_SPLIT, stride_am, stride_ak, stride_bk, stride_bn,
                   stride_ps, stride_pm, stride_pn,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    low = split * K_PER_SPLIT
    high = tl.minimum(K, low + K_PER_SPLIT)
    row_ok = (rows < M)[:, None]
    col_ok = (cols < N)[None, :]
    a_rows = a_ptr + rows.to(tl.int64)[:, None] * stride_am
    b_cols = b_ptr + cols.to(tl.int64)[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(low, high, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        k_long = k.to(tl.int64)
        if EVEN_K:
            a = tl.load(a_rows + k_long[None, :] * stride_ak, mask=row_ok, other=0.0)
            b = tl.load(b_cols + k_long[:, None] * stride_bk, mask=col_ok, other=0.0)
        else:
            a = tl.load(a_rows + k_long[None, :] * stride_ak, mask=row_ok & (k < K)[None, :], other=0.0)
            b = tl.load(b_cols + k_long[:, None] * stride_bk, mask=col_ok & (k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    where = split.to(tl.int64) * stride_ps + rows.to(tl.int64)[:, None] * stride_pm + cols[None, :] * stride_pn
    tl.store(p_ptr + where, acc, mask=row_ok & col_ok)


@triton.jit
def add_kernel(p_ptr, c_ptr, count, splits, stride_ps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for s in range(0, splits):
        total += tl.load(p_ptr + s.to(tl.int64) * stride_ps + i, mask=ok, other=0.0)
    tl.store(c_ptr + i, total.to(c_ptr.dtype.element_ty), mask=ok)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        m, k = A.shape
        n = B.shape[1]
        splits, per_split = split_of(m, n, k)
        partial = torch.empty((splits, m, n), device=A.device, dtype=torch.float32)
        out = torch.empty((m, n), device=A.device, dtype=A.dtype)
        grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]), splits)
        partial_kernel[grid](A, B, partial, m, n, k, per_split, *A.stride(), *B.stride(), *partial.stride())
        add_kernel[(triton.cdiv(m * n, 256),)](partial, out.view(-1), m * n, splits, partial.stride(0), BLOCK=256)
        return out
