# problem: level1/93
# precision: bf16
# kind: honest
# expects: correct: two kernels, mask viewed as bytes, associative_scan with a helper, autotuned warps, strides by the dim given
# size: small
import torch
import triton
import triton.language as tl

CHUNK = 512


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def selected(x_ptr, mask_ptr, line, i, extent, stride_line, stride_item):
    at = line.to(tl.int64) * stride_line + i.to(tl.int64) * stride_item
    ok = i < extent
    flags = tl.load(mask_ptr + at, mask=ok, other=0)
    values = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    return tl.where(flags != 0, values, 0.0)


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (4, 2, 8)], key=["extent"])
@triton.jit
def chunk_sum_kernel(x_ptr, mask_ptr, sums_ptr, extent, chunks, stride_line, stride_item, CHUNK: tl.constexpr):
    pid = tl.program_id(0)
    line, chunk = pid // chunks, pid % chunks
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    v = selected(x_ptr, mask_ptr, line, i, extent, stride_line, stride_item)
    tl.store(sums_ptr + pid, tl.sum(v, axis=0))


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (4, 2, 8)], key=["extent"])
@triton.jit
def scan_kernel(x_ptr, mask_ptr, sums_ptr, out_ptr, extent, chunks, stride_line, stride_item, CHUNK: tl.constexpr,
                BLOCK_S: tl.constexpr):
    pid = tl.program_id(0)
    line, chunk = pid // chunks, pid % chunks
    before = tl.zeros((BLOCK_S,), dtype=tl.float32)
    for start in range(0, chunk, BLOCK_S):
        j = start + tl.arange(0, BLOCK_S)
        before += tl.load(sums_ptr + line * chunks + j, mask=j < chunk, other=0.0)
    carry = tl.sum(before, axis=0)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    v = selected(x_ptr, mask_ptr, line, i, extent, stride_line, stride_item)
    result = tl.associative_scan(v, 0, add) + carry
    at = line.to(tl.int64) * stride_line + i.to(tl.int64) * stride_item
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty), mask=i < extent)


def lines_of(x: torch.Tensor, dim: int) -> tuple[int, int, int, int]:
    """Number of lines, their extent, and the strides between lines and within one."""
    dim = dim % 2
    return x.shape[1 - dim], x.shape[dim], x.stride(1 - dim), x.stride(dim)


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lines, extent, stride_line, stride_item = lines_of(x, self.dim)
        chunks = triton.cdiv(extent, CHUNK)
        flags = mask.view(torch.uint8)
        out = torch.empty_like(x)
        sums = torch.empty((lines, chunks), device=x.device, dtype=torch.float32)
        grid = (lines * chunks,)
        chunk_sum_kernel[grid](x, flags, sums, extent, chunks, stride_line, stride_item, CHUNK=CHUNK)
        scan_kernel[grid](x, flags, sums, out, extent, chunks, stride_line, stride_item, CHUNK=CHUNK, BLOCK_S=64)
        return out
