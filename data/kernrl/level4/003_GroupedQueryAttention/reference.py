"""Causal attention in which several heads of queries share one of keys and values."""

import math

import torch

SIZES = {
    "small": {"batch": 2, "length": 41, "width": 51, "kv_heads": 2, "group": 3, "head_size": 18},
    "medium": {"batch": 1, "length": 512, "width": 4096, "kv_heads": 8, "group": 4, "head_size": 128},
    "full": {"batch": 4, "length": 2048, "width": 4096, "kv_heads": 8, "group": 4, "head_size": 128},
}
DTYPES = {"cosines": "float32", "sines": "float32"}
KEPT = ("cosines", "sines")
TAGS = ("attention", "matmul")
OP_FAMILY = "attention"
MENDS = (
    "kernrl computes angles in the run's precision, where late positions have no digits left. Here cosines and sines "
    "are inputs in 32 bits."
)


def rotated(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """(batch, length, heads, size) turned in the pairs (i, i + size / 2) by the angles of (length, size / 2)."""
    a, b = x.chunk(2, -1)
    cosines, sines = cosines[:, None], sines[:, None]
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)


def angles(length: int, size: int) -> list[torch.Tensor]:
    """Cosines and sines by position; from pair to pair angles grow more slowly."""
    angle = torch.arange(length)[:, None] * 10000 ** (-torch.arange(size // 2) / (size // 2))
    return [angle.cos(), angle.sin()]


class Model(torch.nn.Module):
    """Queries and keys are rotated by position; each head of keys and values serves `group` heads of queries."""

    def __init__(self, width: int, kv_heads: int, group: int, head_size: int) -> None:
        super().__init__()
        self.head_size, self.group = head_size, group
        self.q = torch.nn.Linear(width, kv_heads * group * head_size, bias=False)
        self.k = torch.nn.Linear(width, kv_heads * head_size, bias=False)
        self.v = torch.nn.Linear(width, kv_heads * head_size, bias=False)
        self.project = torch.nn.Linear(kv_heads * group * head_size, width, bias=False)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) and twice (length, head_size / 2) -> (batch, length, width)."""
        q, k, v = (layer(x).unflatten(-1, (-1, self.head_size)) for layer in (self.q, self.k, self.v))
        q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
        k, v = (shared.repeat_interleave(self.group, 2) for shared in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.head_size)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        shares = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return self.project(torch.einsum("bhqk,bkhd->bqhd", shares, v).flatten(2))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [2 * torch.randn(p["batch"], p["length"], p["width"]), *angles(p["length"], p["head_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size][name] for name in ("width", "kv_heads", "group", "head_size")]
