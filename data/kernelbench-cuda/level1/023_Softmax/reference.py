"""Softmax over the rows of a matrix whose rows are far longer than a block has threads."""

import torch

SIZES = {
    "small": {"batch_size": 263, "dim": 3001},
    "medium": {"batch_size": 256, "dim": 393216},
    "full": {"batch_size": 4096, "dim": 393216},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("softmax",)


class Model(torch.nn.Module):
    """Softmax over dimension 1.

    At 393216 columns a probability is about 2.5e-6: subnormal in fp16, whose step there is 6e-8.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim), rows sum to 1."""
        return torch.softmax(x, dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
