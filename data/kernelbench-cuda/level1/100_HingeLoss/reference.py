"""Hinge loss of a matrix of predictions against one sign per column."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 32768},
    "full": {"batch_size": 32768, "dim": 32768},
    # One column of 128 there, which lies in memory as this row does.
    "v0": {"batch_size": 1, "dim": 128},
}
TAGS = ("loss",)
MENDS = (
    "KernelBench draws predictions from [0, 1): no product exceeds 1, nothing is ever clamped, and the loss is "
    "about 1 whatever the signs are. Here predictions are normal around their signs: of those that did not lean to "
    "either side, a kernel that ignores the signs would lose a few parts in 10,000."
)


class Model(torch.nn.Module):
    """Mean of max(1 - predictions targets, 0); targets are broadcast over rows."""

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim), (dim,) of -1 and 1 -> scalar."""
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Predictions lean to the side of their signs, or the loss of so many would not depend on these. They have another
    scale and margin in each draw: otherwise the loss would always be the same number.
    """
    p = SIZES[size]
    scale, margin = 0.5 + torch.rand(()), 0.5 + torch.rand(())
    signs = torch.randint(0, 2, (p["dim"],)).float() * 2 - 1
    return [margin * signs + scale * torch.randn(p["batch_size"], p["dim"]), signs]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
