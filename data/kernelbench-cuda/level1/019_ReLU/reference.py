"""Rectified linear unit over a large matrix."""

import torch

SIZES = {
    "small": {"batch_size": 131, "dim": 10007},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("elementwise",)
MENDS = (
    "KernelBench draws from [0, 1), where this function is the identity: a copy of the input would pass. Here "
    "inputs are normal."
)


class Model(torch.nn.Module):
    """max(x, 0), element by element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.relu(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Normal values where KernelBench draws from [0, 1): there, a copy of the input would be right.
    """
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
