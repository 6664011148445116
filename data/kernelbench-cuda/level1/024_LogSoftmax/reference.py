"""Logarithm of the softmax over the rows of a matrix whose rows are far longer than a block has threads."""

import torch

SIZES = {
    "small": {"batch_size": 29, "dim": 3001},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("softmax",)
MENDS = (
    "KernelBench draws from [0, 1): at 393216 columns all outputs lie within 4 % of -12.9. Here inputs are "
    "normal, four times as wide."
)


class Model(torch.nn.Module):
    """x - log(sum(exp(x))) over dimension 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return torch.log_softmax(x, dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Normal values: spread wide enough that a constant is no good answer.
    """
    p = SIZES[size]
    return [4 * torch.randn(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
