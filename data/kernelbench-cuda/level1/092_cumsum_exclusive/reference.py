"""Exclusive cumulative sum along the rows of a matrix."""

import torch

SIZES = {
    "small": {"batch_size": 23, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    "v0": {"batch_size": 128, "dim": 4000},
}
TAGS = ("scan",)


class Model(torch.nn.Module):
    """Sum of all elements before each one along one dimension; the first is zero."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        before = torch.cumsum(x.narrow(self.dim, 0, x.size(self.dim) - 1), dim=self.dim)
        return torch.cat((torch.zeros_like(x.select(self.dim, 0).unsqueeze(self.dim)), before), dim=self.dim)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. The largest sum of a row is about dim / 2 = 16384, within fp16."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
