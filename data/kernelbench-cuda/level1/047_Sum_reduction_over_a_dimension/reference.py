"""Sum over the middle dimension of a three-dimensional tensor: neighbouring outputs, distant summands."""

import torch

SIZES = {
    "small": {"batch_size": 7, "dim1": 509, "dim2": 1999},
    "medium": {"batch_size": 16, "dim1": 2048, "dim2": 4095},
    "full": {"batch_size": 128, "dim1": 4096, "dim2": 4095},
    "v0": {"batch_size": 16, "dim1": 256, "dim2": 256},
}
TAGS = ("reduction",)


class Model(torch.nn.Module):
    """Sum over one dimension, which is kept with extent 1."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim1, dim2) -> (batch_size, 1, dim2)."""
        return torch.sum(x, dim=self.dim, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Sums are about dim1 / 2 = 2048 at most, within fp16."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [1]
