"""Smooth L1 loss between two matrices: quadratic for small differences, linear for large ones."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    "v0": {"batch_size": 128, "dim": 4096},
}
TAGS = ("loss",)
MENDS = (
    "KernelBench draws both from [0, 1): no difference reaches 1, and the linear branch is never taken. Here both "
    "are normal."
)


class Model(torch.nn.Module):
    """Mean of d^2 / 2 where |d| < 1, else |d| - 1 / 2, with d = predictions - targets."""

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim), (batch_size, dim) -> scalar."""
        return torch.nn.functional.smooth_l1_loss(predictions, targets)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Predictions have another scale in each draw: otherwise the loss of so many elements would always be the same
    number.
    """
    p = SIZES[size]
    shape, scale = (p["batch_size"], p["dim"]), 0.5 + torch.randn(())
    return [scale * torch.randn(shape), torch.randn(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
