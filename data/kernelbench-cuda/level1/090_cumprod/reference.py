"""Cumulative product along the rows of a matrix."""

import torch

SIZES = {
    "small": {"batch_size": 23, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    "v0": {"batch_size": 128, "dim": 4000},
}
TAGS = ("scan",)
MENDS = (
    "KernelBench draws from [0, 1): after about a hundred elements of each row all products are zero. Here "
    "elements are near 1, and in every fourth row products fall below what fp16 holds, or rise above it, and come back."
)
FARTHEST = 45.0
"""Powers of two that the products of such a row go: far beyond fp16, well within fp32."""
STEEP, FAR, NEAR = 61, 307, 83
"""Elements in which they get there, or come back; in which they stay there; and in which they stay back."""


class Model(torch.nn.Module):
    """Cumulative product along one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.cumprod(x, dim=self.dim)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size, so near 1 that products of 32768 of them are neither tiny nor huge at the end."""
    p = SIZES[size]
    x = 1 + 0.01 * torch.randn(p["batch_size"], p["dim"])
    x[1::4] *= excursions(p["dim"])
    return [x]


def excursions(dim: int) -> torch.Tensor:
    """Factors whose products fall to 2^-45, stay there, come back, stay, rise to 2^45, and so on; (dim,)."""
    legs = [(-1, STEEP), (0, FAR), (1, STEEP), (0, NEAR), (1, STEEP), (0, FAR), (-1, STEEP), (0, NEAR)]
    steps = torch.cat([torch.full((length,), way * FARTHEST / STEEP) for way, length in legs])
    rounds = dim // len(steps)
    return 2.0 ** torch.cat([steps.repeat(rounds), torch.zeros(dim - rounds * len(steps))])


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
