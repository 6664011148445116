"""Attention whose keys and values are expanded from one small vector per token."""

import math

import torch

SIZES = {
    "small": {
        "batch": 2, "length": 37, "width": 51, "heads": 3, "q_rank": 29, "kv_rank": 23, "plain_size": 13,
        "rotated_size": 6, "value_size": 11,
    },
    "medium": {
        "batch": 1, "length": 512, "width": 2048, "heads": 16, "q_rank": 1536, "kv_rank": 512, "plain_size": 128,
        "rotated_size": 64, "value_size": 128,
    },
    "full": {
        "batch": 4, "length": 2048, "width": 2048, "heads": 16, "q_rank": 1536, "kv_rank": 512, "plain_size": 128,
        "rotated_size": 64, "value_size": 128,
    },
}  # fmt: skip
SCALARS = {"epsilon": 1e-6}
DTYPES = {"cosines": "float32", "sines": "float32"}
KEPT = ("cosines", "sines")
TAGS = ("attention", "matmul", "norm")
OP_FAMILY = "attention"
MENDS = (
    "kernrl's tables of angles lack an axis, so that its reference raises. Here cosines and sines are inputs in 32 "
    "bits, and tokens share one rotated key as they should."
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
    """Queries and keys of each head have a plain part and a part rotated by position, which keys share."""

    def __init__(
        self, width: int, heads: int, q_rank: int, kv_rank: int, plain_size: int, rotated_size: int, value_size: int
    ) -> None:
        super().__init__()
        self.heads, self.sizes, self.kv = heads, (plain_size, rotated_size), (kv_rank, rotated_size)
        self.expanded = (plain_size, value_size)
        self.q_down = torch.nn.Linear(width, q_rank, bias=False)
        self.q_scale = torch.nn.Parameter(0.5 + torch.rand(q_rank))
        self.q_up = torch.nn.Linear(q_rank, heads * (plain_size + rotated_size), bias=False)
        self.kv_down = torch.nn.Linear(width, kv_rank + rotated_size, bias=False)
        self.kv_scale = torch.nn.Parameter(0.5 + torch.rand(kv_rank))
        self.kv_up = torch.nn.Linear(kv_rank, heads * (plain_size + value_size), bias=False)
        self.project = torch.nn.Linear(heads * value_size, width, bias=False)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) and twice (length, rotated_size / 2) -> (batch, length, width)."""
        heads = (*x.shape[:2], self.heads, -1)
        q, q_turned = self.q_up(normed(self.q_down(x), self.q_scale)).view(heads).split(self.sizes, -1)
        latent, k_turned = self.kv_down(x).split(self.kv, -1)
        k, v = self.kv_up(normed(latent, self.kv_scale)).view(heads).split(self.expanded, -1)
        k_turned = rotated(k_turned[:, :, None], cosines, sines).expand(*k.shape[:3], -1)
        q, k = torch.cat((q, rotated(q_turned, cosines, sines)), -1), torch.cat((k, k_turned), -1)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        shares = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return self.project(torch.einsum("bhqk,bkhd->bqhd", shares, v).flatten(2))


def normed(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x over its root mean square, times a scale."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + SCALARS["epsilon"]) * scale


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch"], p["length"], p["width"]), *angles(p["length"], p["rotated_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    names = ("width", "heads", "q_rank", "kv_rank", "plain_size", "rotated_size", "value_size")
    return [SIZES[size][name] for name in names]
