"""Gaussian error linear unit (exact form) over a large matrix."""

import torch

SIZES = {
    "small": {"batch_size": 131, "dim": 10007},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("elementwise",)


class Model(torch.nn.Module):
    """x Phi(x), with Phi the normal distribution function, element by element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.nn.functional.gelu(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Normal values where KernelBench draws from [0, 1): negative values take the other branch of the curve.
    """
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
