"""Cumulative sum along the rows of a matrix over the elements that a mask selects."""

import torch

SIZES = {
    "small": {"batch_size": 23, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    "v0": {"batch_size": 128, "dim": 4000},
}
TAGS = ("scan",)


class Model(torch.nn.Module):
    """Cumulative sum of the selected elements along one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim), (batch_size, dim) flags -> (batch_size, dim)."""
        return torch.cumsum(x * mask, dim=self.dim)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. The largest sum of a row is about dim / 4 = 8192, within fp16."""
    p = SIZES[size]
    shape = (p["batch_size"], p["dim"])
    return [torch.rand(shape), torch.randint(0, 2, shape).bool()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
