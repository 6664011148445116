"""Logistic sigmoid over a large matrix."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 2003},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("elementwise",)


class Model(torch.nn.Module):
    """1 / (1 + exp(-x)), element by element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.sigmoid(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
