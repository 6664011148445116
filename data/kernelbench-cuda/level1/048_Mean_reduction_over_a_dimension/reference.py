"""Mean over the middle dimension of a three-dimensional tensor."""

import torch

SIZES = {
    "small": {"batch_size": 5, "dim1": 131, "dim2": 211},
    "medium": {"batch_size": 16, "dim1": 2048, "dim2": 4095},
    "full": {"batch_size": 128, "dim1": 4096, "dim2": 4095},
    "v0": {"batch_size": 16, "dim1": 256, "dim2": 256},
}
TAGS = ("reduction",)
MENDS = "KernelBench draws from [0, 1): at full size all outputs are within 5 % of 0.5. Here inputs are normal."


class Model(torch.nn.Module):
    """Mean over one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim1, dim2) -> (batch_size, dim2)."""
        return torch.mean(x, dim=self.dim)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
