"""GELU's approximation by tanh, as minGPT writes it, over a square matrix."""

import math

import torch

SIZES = {
    "small": {"batch_size": 41, "dim": 1801},
    "medium": {"batch_size": 8192, "dim": 8192},
    "full": {"batch_size": 8192, "dim": 8192},
    "v0": {"batch_size": 2000, "dim": 2000},
}
TAGS = ("elementwise",)


class Model(torch.nn.Module):
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), written out in elementary operations."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
