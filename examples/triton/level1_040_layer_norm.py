"""Layer norm over a whole sample: partial sums by chunks, then each block combines them and normalises its chunk."""

import torch
import triton
import triton.language as tl


@triton.jit
def moments_kernel(x, partial, count, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64) * count
    first = tl.program_id(0) * CHUNK
    held = tl.minimum(CHUNK, count - first)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        total += tl.load(x + sample + at, mask=at < count, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / held
    spread = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        value = tl.load(x + sample + at, mask=at < count, other=0.0).to(tl.float32) - mean
        spread += tl.where(at < count, value * value, 0.0)
    to = partial + 2 * (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0))
    tl.store(to, mean)
    tl.store(to + 1, tl.sum(spread, axis=0))


@triton.jit
def apply_kernel(x, weight, bias, partial, out, count, chunks, eps, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
                 CHUNKS: tl.constexpr):  # fmt: skip
    sample = tl.program_id(1).to(tl.int64) * count
    chunk = tl.arange(0, CHUNKS)
    there = chunk < chunks
    held = tl.where(there, tl.minimum(CHUNK, count - chunk * CHUNK), 0).to(tl.float32)
    own = partial + 2 * (tl.program_id(1) * chunks + chunk)
    means = tl.load(own, mask=there, other=0.0)
    spreads = tl.load(own + 1, mask=there, other=0.0)
    mean = tl.sum(means * held, axis=0) / count
    apart = means - mean
    variance = (tl.sum(spreads, axis=0) + tl.sum(apart * apart * held, axis=0)) / count
    scale = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, CHUNK, BLOCK):
        at = tl.program_id(0) * CHUNK + start + tl.arange(0, BLOCK)
        inside = at < count
        value = (tl.load(x + sample + at, mask=inside, other=0.0).to(tl.float32) - mean) * scale
        value = value * tl.load(weight + at, mask=inside, other=0.0) + tl.load(bias + at, mask=inside, other=0.0)
        tl.store(out + sample + at, value.to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__()
        self.ln = torch.nn.LayerNorm(normalized_shape, eps=eps)

    def forward(self, x):
        out = torch.empty_like(x)
        samples, count = x.shape[0], x[0].numel()
        chunk = 4096
        chunks = triton.cdiv(count, chunk)
        partial = torch.empty((samples, chunks, 2), dtype=torch.float32, device=x.device)
        moments_kernel[(chunks, samples)](x, partial, count, CHUNK=chunk, BLOCK=1024)
        apply_kernel[(chunks, samples)](
            x, self.ln.weight, self.ln.bias, partial, out, count, chunks, self.ln.eps,
            CHUNK=chunk, BLOCK=1024, CHUNKS=triton.next_power_of_2(chunks),
        )  # fmt: skip
        return out
