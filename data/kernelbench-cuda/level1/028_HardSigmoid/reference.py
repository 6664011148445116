"""Piecewise linear approximation of the sigmoid over a large matrix."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 2003},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("elementwise",)
MENDS = (
    "KernelBench draws from [0, 1), where this function is linear: neither bound is reached. Here inputs are "
    "normal, four times as wide."
)


class Model(torch.nn.Module):
    """x / 6 + 1 / 2, at least 0 and at most 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.nn.functional.hardsigmoid(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4 * torch.randn(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
