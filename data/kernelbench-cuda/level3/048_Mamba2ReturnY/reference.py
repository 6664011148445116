"""Mamba-2's state-space layer in chunks: what each step reads from the states."""

import torch

SIZES = {
    "small": {"batch_size": 2, "seq_length": 18, "n_heads": 3, "d_head": 19, "d_state": 7, "block_len": 6},
    "medium": {"batch_size": 256, "seq_length": 128, "n_heads": 8, "d_head": 64, "d_state": 16, "block_len": 64},
    "full": {"batch_size": 2048, "seq_length": 128, "n_heads": 8, "d_head": 64, "d_state": 16, "block_len": 64},
    "v0": {"batch_size": 16, "seq_length": 128, "n_heads": 8, "d_head": 64, "d_state": 16, "block_len": 64},
}
TAGS = ("recurrent", "scan", "matmul")
MENDS = (
    "KernelBench draws the logarithms of decays from a normal distribution, so that states grow beyond what fp16 "
    "holds. Here they are negative."
)


def decays(steps: torch.Tensor) -> torch.Tensor:
    """(..., length) -> (..., length, length): exp of the sum of steps j + 1 to i at (i, j), 0 above the diagonal."""
    sums = steps.cumsum(dim=-1)
    lower = torch.ones(sums.shape[-1], sums.shape[-1], dtype=torch.bool, device=steps.device).tril()
    return torch.exp((sums.unsqueeze(-1) - sums.unsqueeze(-2)).masked_fill(~lower, -torch.inf))


class Model(torch.nn.Module):
    """state = exp(A) state + X B^T from step to step, of which each reads state C.

    Computed chunk by chunk: within a chunk by products, between chunks by the states that they hand on.
    """

    def __init__(
        self, batch_size: int, seq_length: int, n_heads: int, d_head: int, d_state: int, block_len: int
    ) -> None:
        super().__init__()
        self.block_len = block_len
        self.A = torch.nn.Parameter(-torch.rand(batch_size, seq_length, n_heads))
        self.B = torch.nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = torch.nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """(batch_size, seq_length, n_heads, d_head) -> the same shape."""
        x, a, b, c = (t.unflatten(1, (-1, self.block_len)) for t in (X, self.A, self.B, self.C))
        steps = a.movedim(3, 1)  # (batch, heads, chunks, block_len)
        sums = steps.cumsum(dim=-1)
        to_end = torch.exp(sums[..., -1:] - sums)
        added = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, to_end, x)
        before = torch.cat([torch.zeros_like(added[:, :1]), added], dim=1)
        across = decays(torch.nn.functional.pad(sums[..., -1], (1, 0)))
        states = torch.einsum("bhzc,bchpn->bzhpn", across, before)
        within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, decays(steps), x)
        read = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states[:, :-1], torch.exp(sums))
        return (within + read).flatten(1, 2)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["seq_length"], p["n_heads"], p["d_head"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p[name] for name in ("batch_size", "seq_length", "n_heads", "d_head", "d_state", "block_len")]
