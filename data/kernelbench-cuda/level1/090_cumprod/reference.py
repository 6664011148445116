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
    "elements are near 1."
)


class Model(torch.nn.Module):
    """Cumulative product along one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.cumprod(x, dim=self.dim)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size, so near 1 that products of 32768 of them are neither tiny nor huge."""
    p = SIZES[size]
    return [1 + 0.01 * torch.randn(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
