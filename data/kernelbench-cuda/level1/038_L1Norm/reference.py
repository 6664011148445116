"""Division of each row by the mean magnitude of its elements."""

import torch

SIZES = {
    "small": {"batch_size": 41, "dim": 1801},
    "medium": {"batch_size": 4096, "dim": 65535},
    "full": {"batch_size": 32768, "dim": 65535},
    "v0": {"batch_size": 16, "dim": 16384},
}
TAGS = ("norm", "reduction")


class Model(torch.nn.Module):
    """x / mean(|x|), the mean over dimension 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) -> (batch_size, dim)."""
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
