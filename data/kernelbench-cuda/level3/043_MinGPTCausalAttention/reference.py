"""Multi-head causal self-attention with its input and output projections."""

import math

import torch

SIZES = {
    "small": {"batch_size": 2, "seq_len": 67, "n_embd": 57, "n_head": 3, "max_seqlen": 384},
    "medium": {"batch_size": 16, "seq_len": 512, "n_embd": 768, "n_head": 8, "max_seqlen": 1024},
    "full": {"batch_size": 128, "seq_len": 512, "n_embd": 768, "n_head": 8, "max_seqlen": 1024},
}
TAGS = ("attention", "matmul")
MENDS = (
    "KernelBench draws from [0, 1), where an average of the values that never looks at queries and keys is nearly "
    "right. Here inputs are normal and wide."
)


class Model(torch.nn.Module):
    """softmax(mask(q k^T / sqrt(head size))) v between two linear layers.

    KernelBench's two dropout layers have probability 0 and are left out.
    """

    def __init__(self, n_embd: int, n_head: int, max_seqlen: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.c_attn = torch.nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = torch.nn.Linear(n_embd, n_embd)
        # A constant, not a weight: the kernel knows that attention is causal.
        mask = torch.tril(torch.ones(max_seqlen, max_seqlen, dtype=torch.bool))
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, seq_len, n_embd) -> the same shape."""
        batch, length, width = x.shape
        heads = (batch, length, self.n_head, width // self.n_head)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.n_head)
        scores = scores.masked_fill(~self.mask[:length, :length], -math.inf)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Wide normal values where KernelBench draws from [0, 1): there, all scores are nearly equal, and an average of the
    values that never looks at queries and keys is nearly right.
    """
    p = SIZES[size]
    return [4 * torch.randn(p["batch_size"], p["seq_len"], p["n_embd"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["n_embd"], p["n_head"], p["max_seqlen"]]
