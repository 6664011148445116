"""Mean squared error between two matrices."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    "v0": {"batch_size": 128, "dim": 4096},
}
TAGS = ("loss",)


class Model(torch.nn.Module):
    """Mean of (predictions - targets)^2 over all elements."""

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim), (batch_size, dim) -> scalar."""
        return torch.mean((predictions - targets) ** 2)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Predictions have another scale in each draw: otherwise the loss of so many elements would always be the same
    number.
    """
    p = SIZES[size]
    shape, scale = (p["batch_size"], p["dim"]), 0.5 + torch.rand(())
    return [scale * torch.rand(shape), torch.rand(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
